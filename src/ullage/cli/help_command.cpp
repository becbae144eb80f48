// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/help_command.h"

#include "ullage/base/exit_code.h"
#include "ullage/cli/usage.h"

#include <ostream>

namespace ullage::cli {

CLI::App* add_help(CLI::App& app, HelpOptions& options) {
  CLI::App* verb = app.add_subcommand("help", "say what a verb does and which options it takes");
  set_usage(*verb, "ullage help [VERB]");
  verb->group("Verbs");
  verb->add_option("VERB", options.verb, "a verb; without it, the overview")->type_name("");
  return verb;
}

int run_help(const HelpOptions& options, const CLI::App& app, Streams streams) {
  const CLI::App* about = options.verb.empty() ? &app : app.get_subcommand(options.verb);
  streams.out << about->help();
  return to_int(ExitCode::Done);
}

}  // namespace ullage::cli
