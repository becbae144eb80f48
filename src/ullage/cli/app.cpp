// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/app.h"

#include "ullage/base/exit_code.h"
#include "ullage/cli/advise_command.h"
#include "ullage/cli/explain_command.h"
#include "ullage/cli/plan_command.h"
#include "ullage/cli/predict_command.h"
#include "ullage/cli/programs.h"
#include "ullage/cli/run_command.h"
#include "ullage/cli/usage.h"
#include "ullage/cli/words.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <optional>
#include <ostream>

namespace ullage::cli {
namespace {

using WordList = std::vector<std::string>;

const WordList kVerbs = {"run", "predict", "advise", "plan", "explain", "help"};

bool is_in(const std::string& word, const WordList& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

int wrong_use(const std::string& message, const std::string& help, std::ostream& err) {
  err << "ullage: " << message << "\nullage: see '" << help << "'\n";
  return to_int(ExitCode::WrongUse);
}

std::string about_verb(const std::string& word) {
  std::string message = "unknown verb '" + word + "'";
  if (is_in(word, shipped_programs(own_folder()))) return message + ", did you mean 'run " + word + "'?";
  return message + suggestion(word, kVerbs);
}

// Lets CLI11 parse `words`, all of which must be options or positionals of `app`. Returns the exit code if nothing is
// left to do: after --help and --version, or if a value is wrong.
std::optional<int> parse(CLI::App& app, WordList words, const std::string& help, Streams streams) {
  std::reverse(words.begin(), words.end());  // CLI11 takes the last word first
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    streams.out << app.help();
    return to_int(ExitCode::Done);
  } catch (const CLI::CallForVersion& version) {
    streams.out << version.what() << '\n';
    return to_int(ExitCode::Done);
  } catch (const CLI::ParseError& error) {
    return wrong_use(error.what(), help, streams.err);
  }
  return std::nullopt;
}

int run_verb_run(CLI::App& verb, RunOptions& options, const WordList& words, Streams streams) {
  const Result<Split> split = split_words(verb, words);
  if (!split) return wrong_use(split.error().text(), "ullage help run", streams.err);
  if (const auto end = parse(verb, split->options, "ullage help run", streams)) return *end;
  options.target = split->target;
  return run_run(options, streams);
}

// If the target is a file of takes, options may also follow it. All words after a program's name belong to the program.
int run_verb_predict(CLI::App& verb, PredictOptions& options, const WordList& words, Streams streams) {
  Result<Split> split = split_words(verb, words);
  if (split && !split->target.empty() && is_take_file(split->target.front()))
    split = gather_words(verb, words, Commands::Run);
  if (!split) return wrong_use(split.error().text(), "ullage help predict", streams.err);
  if (const auto end = parse(verb, split->options, "ullage help predict", streams)) return *end;
  options.target = split->target;
  return run_predict(options, streams);
}

// Options may also follow a file.
int run_verb_advise(CLI::App& verb, AdviseOptions& options, const WordList& words, Streams streams) {
  Result<Split> split = split_words(verb, words);
  if (split && !split->target.empty() && split->target.front() != "--" && !is_shipped_program(split->target.front()))
    split = gather_words(verb, words, Commands::Run);
  if (!split) return wrong_use(split.error().text(), "ullage help advise", streams.err);
  if (const auto end = parse(verb, split->options, "ullage help advise", streams)) return *end;
  options.target = split->target;
  return run_advise(options, streams);
}

int run_verb_plan(CLI::App& verb, PlanOptions& options, const WordList& words, Streams streams) {
  const Result<Split> split = gather_words(verb, words, Commands::None);
  if (!split) return wrong_use(split.error().text(), "ullage help plan", streams.err);
  if (const auto end = parse(verb, split->options, "ullage help plan", streams)) return *end;
  options.files = split->target;
  return run_plan(options, streams);
}

// Options may stand before and after a file. All words after "--" are a command and its arguments.
int run_verb_explain(CLI::App& verb, ExplainOptions& options, const WordList& words, Streams streams) {
  Result<Split> split = split_words(verb, words);
  const bool command = split && !split->target.empty() && split->target.front() == "--";
  if (!command) split = gather_words(verb, words, Commands::Run);
  if (!split) return wrong_use(split.error().text(), "ullage help explain", streams.err);
  if (const auto end = parse(verb, split->options, "ullage help explain", streams)) return *end;
  (command ? options.command : options.files) = split->target;
  return run_explain(options, streams);
}

struct HelpOptions {
  std::string verb;  // empty: the overview
};

CLI::App* add_help(CLI::App& app, HelpOptions& options) {
  CLI::App* verb = app.add_subcommand("help", "say what a verb does and which options it takes");
  set_usage(*verb, "ullage help [VERB]");
  verb->group("Verbs");
  verb->add_option("VERB", options.verb, "a verb; without it, the overview")->type_name("");
  return verb;
}

int run_verb_help(CLI::App& verb, HelpOptions& options, const CLI::App& app, const WordList& words, Streams streams) {
  Result<Split> split = split_words(verb, words);
  if (!split) return wrong_use(split.error().text(), "ullage help", streams.err);
  if (split->target.size() > 1) return wrong_use("help takes one verb", "ullage help", streams.err);
  WordList all = split->options;
  all.insert(all.end(), split->target.begin(), split->target.end());
  if (const auto end = parse(verb, all, "ullage help", streams)) return *end;
  if (!options.verb.empty() && !is_in(options.verb, kVerbs)) {
    return wrong_use(about_verb(options.verb), "ullage help", streams.err);
  }
  streams.out << (options.verb.empty() ? app : *app.get_subcommand(options.verb)).help();
  return to_int(ExitCode::Done);
}

}  // namespace

int run_ullage(const WordList& words, Streams streams) {
  CLI::App app(
      "Ullage keeps a program's memory inside the bytes you state, says before "
      "a run what it will need\nand how it would fit, and after one why memory ran out.",
      "ullage");
  set_usage(app, "ullage VERB [OPTIONS] [TARGET]");
  app.footer("next: ullage help run, ullage help predict, ullage help advise, ullage help plan, ullage help explain");
  RunOptions run;
  PredictOptions predict;
  AdviseOptions advise;
  PlanOptions plan;
  ExplainOptions explain;
  HelpOptions help;
  CLI::App* run_verb = add_run(app, run);
  CLI::App* predict_verb = add_predict(app, predict);
  CLI::App* advise_verb = add_advise(app, advise);
  CLI::App* plan_verb = add_plan(app, plan);
  CLI::App* explain_verb = add_explain(app, explain);
  CLI::App* help_verb = add_help(app, help);

  const Result<Split> split = split_words(app, words);
  if (!split) return wrong_use(split.error().text(), "ullage help", streams.err);
  if (const auto end = parse(app, split->options, "ullage help", streams)) return *end;
  if (split->target.empty()) return wrong_use("no verb given", "ullage help", streams.err);
  const std::string& verb = split->target.front();
  const WordList rest(split->target.begin() + 1, split->target.end());
  if (verb == "run") return run_verb_run(*run_verb, run, rest, streams);
  if (verb == "predict") return run_verb_predict(*predict_verb, predict, rest, streams);
  if (verb == "advise") return run_verb_advise(*advise_verb, advise, rest, streams);
  if (verb == "plan") return run_verb_plan(*plan_verb, plan, rest, streams);
  if (verb == "explain") return run_verb_explain(*explain_verb, explain, rest, streams);
  if (verb == "help") return run_verb_help(*help_verb, help, app, rest, streams);
  return wrong_use(about_verb(verb), "ullage help", streams.err);
}

}  // namespace ullage::cli
