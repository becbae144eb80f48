// SPDX-License-Identifier: Apache-2.0
// Compares what the executable answers to each command line, word for word, with a file in golden/.
#include "folders.h"
#include "golden_file.h"
#include "ullage_process.h"

#include <gtest/gtest.h>

#include <ostream>

namespace ullage::cli {
namespace {

struct CommandLine {
  const char* name;
  Words words;
};

std::ostream& operator<<(std::ostream& out, const CommandLine& line) {
  return out << line.name;
}  // the name of its ctest

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

class CommandLineOf : public testing::TestWithParam<CommandLine> {};

TEST_P(CommandLineOf, Golden) {
  const ShippedFolder folder;
  Words words = {folder.file("ullage")};
  std::string text = "$ ullage";
  for (const std::string& word : GetParam().words) {
    words.push_back(replaced(word, "{DIR}", folder.path().string()));
    text += " " + word;
  }
  const Finished end = Process(words).finish();
  text += "\n--- exit code " + std::to_string(end.exit_code) + "\n--- stdout\n" + end.out + "--- stderr\n" + end.err;
  expect_golden(tests_folder() / "cli/golden" / (std::string(GetParam().name) + ".txt"),
                replaced(text, folder.path().string(), "{DIR}"));
}

INSTANTIATE_TEST_SUITE_P(
    All, CommandLineOf,
    testing::Values(
        CommandLine{"no_verb", {}}, CommandLine{"help", {"help"}}, CommandLine{"help_option", {"--help"}},
        CommandLine{"help_run", {"help", "run"}}, CommandLine{"run_help", {"run", "--help"}},
        CommandLine{"help_help", {"help", "help"}}, CommandLine{"version", {"--version"}},
        CommandLine{"run_version", {"run", "--version"}}, CommandLine{"unknown_verb", {"rnu"}},
        CommandLine{"unknown_verb_far", {"transmogrify"}}, CommandLine{"program_as_verb", {"fake"}},
        CommandLine{"help_predict", {"help", "predict"}}, CommandLine{"predict_help", {"predict", "--help"}},
        CommandLine{"predict_misspelt", {"perdict", "fake"}}, CommandLine{"predict_nothing", {"predict"}},
        CommandLine{"predict_unknown_program", {"predict", "fkae"}},
        CommandLine{"predict_command_as_program", {"predict", "sh"}},
        CommandLine{"predict_no_command", {"predict", "--vary", "batch", "--at", "batch=9", "--"}},
        CommandLine{"predict_no_vary", {"predict", "--", "true"}},
        CommandLine{"predict_no_at", {"predict", "--vary", "batch=2,3,4", "--", "echo", "{batch}"}},
        CommandLine{"predict_at_alone", {"predict", "--vary", "n", "--at", "m=9", "--", "echo", "{n}"}},
        CommandLine{"predict_no_placeholder", {"predict", "--vary", "n", "--at", "n=9", "--", "echo", "{{n}}"}},
        CommandLine{"predict_below", {"predict", "--vary", "n=4,6,8", "--at", "n=3", "--", "echo", "{n}"}},
        CommandLine{"predict_two_sizes", {"predict", "--vary", "n=4,6", "--at", "n=9", "--", "echo", "{n}"}},
        CommandLine{"predict_vary_program", {"predict", "--vary", "batch", "--at", "batch=9", "fake"}},
        CommandLine{"predict_bad_device", {"predict", "--device", "gpu", "fake"}},
        CommandLine{"predict_bad_memory", {"predict", "--memory", "2XB", "fake"}},
        CommandLine{"predict_keep_folder_missing", {"predict", "--keep", "{DIR}/no/t.ullage", "fake"}},
        CommandLine{"predict_no_such_file", {"predict", "{DIR}/none.ullage", "--json"}},
        CommandLine{"predict_no_trace", {"predict", "{DIR}/ullage-notes.txt"}},
        CommandLine{"predict_no_such_command", {"predict", "--vary", "n", "--at", "n=9", "--", "no-such-command-here"}},
        CommandLine{"predict_unknown_option", {"predict", "--vray", "n", "fake"}},
        CommandLine{"record_folder_missing", {"run", "--record", "{DIR}/no/run.ullage", "fake", "print=never"}},
        CommandLine{"record_is_report", {"run", "--record", "{DIR}/a", "--report", "{DIR}/./a", "fake", "print=never"}},
        CommandLine{"record_is_folder", {"run", "--record", "{DIR}", "fake", "print=never"}},
        CommandLine{"record_nothing", {"run", "--record=", "fake", "print=never"}},
        CommandLine{"help_plan", {"help", "plan"}}, CommandLine{"plan_help", {"plan", "--help"}},
        CommandLine{"plan_nothing", {"plan"}}, CommandLine{"plan_two", {"plan", "a.ullage", "b.ullage"}},
        CommandLine{"plan_no_question", {"plan", "a.ullage"}}, CommandLine{"plan_misspelt", {"plna", "a.ullage"}},
        CommandLine{"plan_unknown_option", {"plan", "a.ullage", "--memroy", "1GiB"}},
        CommandLine{"plan_bad_memory", {"plan", "a.ullage", "--memory", "2XB"}},
        CommandLine{"plan_zero_memory", {"plan", "a.ullage", "--memory", "0"}},
        CommandLine{"plan_unknown_lever", {"plan", "a.ullage", "--memory", "1GiB", "--levers", "recompute,spil"}},
        CommandLine{"plan_no_lever", {"plan", "a.ullage", "--memory", "1GiB", "--levers", "spill,"}},
        CommandLine{"plan_step_zero", {"plan", "a.ullage", "--memory", "1GiB", "--step", "0"}},
        CommandLine{"plan_bad_rate", {"plan", "a.ullage", "--memory", "1GiB", "--rate", "fast"}},
        CommandLine{"plan_bad_seed", {"plan", "a.ullage", "--memory", "1GiB", "--seed=-1"}},
        CommandLine{"plan_curve_to_file", {"plan", "a.ullage", "--curve", "--out", "{DIR}/plan.json"}},
        CommandLine{"plan_out_folder_missing", {"plan", "a.ullage", "--memory", "1GiB", "--out", "{DIR}/no/p.json"}},
        CommandLine{"plan_out_to_stdout", {"plan", "a.ullage", "--memory", "1GiB", "--out", "-"}},
        CommandLine{"plan_one_output", {"plan", "a", "--memory", "1GiB", "--out", "{DIR}/a", "--html", "{DIR}/./a"}},
        CommandLine{"plan_no_such_file", {"plan", "{DIR}/none.ullage", "--memory", "1GiB", "--rate", "1GB"}},
        CommandLine{"plan_no_trace", {"plan", "{DIR}/ullage-notes.txt", "--memory", "1GiB", "--rate", "1GB"}},
        CommandLine{"run_plan_missing", {"run", "--plan", "{DIR}/none.json", "fake", "print=never"}},
        CommandLine{"run_plan_is_none", {"run", "--plan", "{DIR}/ullage-notes.txt", "fake", "print=never"}},
        CommandLine{"run_plan_and_none", {"run", "--plan", "{DIR}/a", "--no-plan", "fake", "print=never"}},
        CommandLine{"help_explain", {"help", "explain"}}, CommandLine{"explain_help", {"explain", "--help"}},
        CommandLine{"explain_no_command", {"explain", "--"}},
        CommandLine{"explain_no_such_command", {"explain", "--", "no-such-command"}},
        CommandLine{"explain_keep_without_command", {"explain", "--keep", "{DIR}", "a.log"}},
        CommandLine{"explain_nothing", {"explain"}}, CommandLine{"explain_two", {"explain", "a.log", "b.log"}},
        CommandLine{"explain_unknown_option", {"explain", "a.log", "--jsno"}},
        CommandLine{"explain_missing_value", {"explain", "a.log", "--convert", "perfetto"}},
        CommandLine{"explain_bad_at", {"explain", "--at", "middle", "a.log"}},
        CommandLine{"explain_bad_device", {"explain", "--device", "cuda:0", "a.log"}},
        CommandLine{"explain_top_zero", {"explain", "--top", "0", "a.log"}},
        CommandLine{"explain_no_such_file", {"explain", "{DIR}/none.log"}},
        CommandLine{"explain_folder", {"explain", "{DIR}"}},
        CommandLine{"explain_page_folder_missing", {"explain", "--html", "{DIR}/no/page.html", "{DIR}/none.log"}},
        CommandLine{"explain_page_is_folder", {"explain", "--html", "{DIR}", "{DIR}/none.log"}},
        CommandLine{"explain_page_to_stdout", {"explain", "--html", "-", "{DIR}/none.log"}},
        CommandLine{"explain_unknown_format", {"explain", "--convert", "svg", "{DIR}/a.svg", "{DIR}/none.log"}},
        CommandLine{"explain_one_output", {"explain", "--html", "{DIR}/a", "--convert", "perfetto", "{DIR}/./a", "x"}},
        CommandLine{"help_unknown_verb", {"help", "rum"}}, CommandLine{"help_two_verbs", {"help", "run", "help"}},
        CommandLine{"unknown_root_option", {"--verison"}},
        CommandLine{"unknown_option", {"run", "--memroy", "2GiB", "fake"}},
        CommandLine{"unknown_option_far", {"run", "--zzz", "fake"}},
        CommandLine{"unknown_short_option", {"run", "-m", "2GiB", "fake"}},
        CommandLine{"unknown_option_with_value", {"run", "--permit", "rounding", "fake"}},
        CommandLine{"spill_folder_missing", {"run", "--spill", "{DIR}/none", "fake", "print=never"}},
        CommandLine{"spill_size_unknown", {"run", "--spill", "{DIR}:2XB", "fake", "print=never"}},
        CommandLine{"spill_size_too_small", {"run", "--spill", "{DIR}:1", "fake", "print=never"}},
        CommandLine{"spill_is_file", {"run", "--spill", "{DIR}/ullage-fake", "fake", "print=never"}},
        CommandLine{"spill_names_nothing", {"run", "--spill=", "fake", "print=never"}},
        CommandLine{"unknown_option_with_equals", {"run", "--permit=rounding", "fake"}},
        CommandLine{"missing_value", {"run", "--memory"}}, CommandLine{"missing_target", {"run", "--quiet"}},
        CommandLine{"missing_command", {"run", "--"}}, CommandLine{"bad_size", {"run", "--memory", "2XB", "fake"}},
        CommandLine{"negative_size", {"run", "--memory=-2", "fake"}},
        CommandLine{"device_unknown", {"run", "--device", "gpu", "fake", "print=never"}},
        CommandLine{"device_is_size", {"run", "--device", "cuda:8GiB", "fake", "print=never"}},
        CommandLine{"device_without_number", {"run", "--device", "cuda:", "fake", "print=never"}},
        CommandLine{"device_below_zero", {"run", "--device", "cuda:-1", "fake", "print=never"}},
        CommandLine{"device_too_high", {"run", "--device", "cuda:128", "fake", "print=never"}},
        CommandLine{"device_zero_size", {"run", "--device", "cuda", "--memory", "0", "fake", "print=never"}},
        CommandLine{"host_memory_without_card", {"run", "--host-memory", "2GiB", "fake", "print=never"}},
        CommandLine{"host_memory_unknown", {"run", "--device=cuda", "--host-memory", "lots", "fake", "print=never"}},
        CommandLine{"zero_size", {"run", "--memory", "0", "fake"}}, CommandLine{"unknown_program", {"run", "fkae"}},
        CommandLine{"command_as_program", {"run", "sh", "-c", "true"}},
        CommandLine{"locked_program", {"run", "locked"}},
        CommandLine{"no_such_command", {"run", "--", "no-such-command-here"}},
        CommandLine{"no_such_file", {"run", "--", "./no/such/file"}},
        CommandLine{"command_is_folder", {"run", "--", "{DIR}"}},
        CommandLine{"command_not_executable", {"run", "--", "{DIR}/ullage-locked"}},
        CommandLine{"report_folder_missing", {"run", "--report", "{DIR}/no/run.json", "fake", "print=never"}},
        CommandLine{"report_is_folder", {"run", "--report", "{DIR}", "fake", "print=never"}},
        CommandLine{"report_is_fifo", {"run", "--report", "{DIR}/fifo", "fake", "print=never"}},
        CommandLine{"quiet", {"run", "--quiet", "fake", "print=hello", "complain=oh"}}));

}  // namespace
}  // namespace ullage::cli
