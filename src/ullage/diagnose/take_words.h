// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is said of a take of Ullage's own recording beside causes: the headline, the notes, what to record, the next
// command. headline.h asks here where the history is a take.

#include "ullage/diagnose/history.h"

#include <string>
#include <vector>

namespace ullage::diagnose {

// `device` as bar.h names it.
std::string take_headline(const History& history, const std::string& device);

// What the figures leave out, first what bears on them most.
std::vector<std::string> take_notes(const History& history);

// Empty: nothing is open.
std::string take_to_know_more(const History& history);

// `file`: quoted as a shell takes it.
std::string take_next(const History& history, const std::string& file);

// "ullage run --memory 768MiB -- python train.py": with enough for the op that needs most. Empty where no op is known,
// and where the command is that of another size.
std::string run_command(const History& history);

// As the take was started: "{batch}" in the command of a file of several sizes is the take's own.
std::vector<std::string> command_of(const History& history);

// As a shell takes it; what is longer than a line ends in "...".
std::string command_in_words(const std::vector<std::string>& command);
std::string shell_word(const std::string& word);

// The program is one of Python, as far as its command tells.
bool is_python(const trace::TraceFile& file);

}  // namespace ullage::diagnose
