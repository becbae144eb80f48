// SPDX-License-Identifier: Apache-2.0
#pragma once

// The texts about a take of Ullage's own trace, apart from its causes: headline, notes, what to record, next command.
// headline.cpp calls these functions if the history is a take.

#include "ullage/diagnose/history.h"

#include <string>
#include <vector>

namespace ullage::diagnose {

// `device` is the name that device_name() gives.
std::string take_headline(const History& history, const std::string& device);

// Returns what a person should know about the figures, such as what they leave out.
std::vector<std::string> take_notes(const History& history);

// Returns what to record to be sure: more steps, if the program trains and fewer than two whole steps were recorded.
// Empty otherwise, and if a request failed.
std::string take_to_know_more(const History& history);

// Returns the next command. `file` must be quoted for a shell.
std::string take_next(const History& history, const std::string& file);

// "ullage run --memory 768MiB -- python train.py". The memory is the sum of the take's need, what the process holds
// outside its pool, and the budget's margin, rounded up to 64 MiB. Empty if no need is known, if the sum is above 1
// PiB, or if the file's command runs another size than the take.
std::string run_command(const History& history);

// Returns the command that ran the take: marks such as "{batch}" in the file's command are replaced by the take's
// values.
std::vector<std::string> command_of(const History& history);

// Quoted for a shell. A command of more than 200 characters is cut and ends in "...".
std::string command_in_words(const std::vector<std::string>& command);
std::string shell_word(const std::string& word);

// Returns whether the command looks like that of a Python program.
bool is_python(const trace::TraceFile& file);

}  // namespace ullage::diagnose
