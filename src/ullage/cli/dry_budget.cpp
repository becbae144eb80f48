// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/exit_code.h"
#include "ullage/cli/dry_run.h"
#include "ullage/cli/launcher.h"
#include "ullage/cli/signals.h"
#include "ullage/cli/take_runner.h"
#include "ullage/store/ledger.h"

#include <csignal>
#include <utility>

namespace ullage::cli {

std::variant<DryBudgetDone, Refusal> DryRunner::run_in_budget(const Launch& program, const DryOrder& order,
                                                              Bytes budget) {
  const auto failed = [](const Error& error) { return Refusal{to_int(ExitCode::Failed), error.text()}; };
  Launch launch_it = program;
  const Result<DryAccount> account = put_under(launch_it, order);
  if (!account) return failed(account.error());
  store::LedgerSettings settings{budget, {}, {}};
  settings.card = 0u, settings.host_memory = kHostOfDryCard, settings.quiet = true;
  Result<store::Ledger> ledger = store::Ledger::create(settings);
  if (!ledger) return failed(ledger.error());
  SignalForwarder signals;
  auto ended = launch(launch_it, *ledger, signals);
  std::signal(SIGPIPE, SIG_IGN);
  if (const auto* failure = std::get_if<NotStarted>(&ended)) return not_started(launch_it, failure->reason);
  auto& end = std::get<report::ProcessEnd>(ended);
  end.dry = count(order, *account);
  DryBudgetDone done{report::summarize(ledger->page(), end), {}, account->host_filled()};
  if (order.quiet_program) done.last_lines = last_lines_of(account->folder / "outputs");
  return done;
}

}  // namespace ullage::cli
