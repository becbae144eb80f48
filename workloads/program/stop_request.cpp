// SPDX-License-Identifier: Apache-2.0
#include "program/stop_request.h"

#include "ullage/base/exit_code.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <string_view>

namespace ullage::program {
namespace {

volatile std::sig_atomic_t stop_asked = 0;
std::string_view what_is_said;  // set before a signal can come

void on_signal(int) {
  if (stop_asked != 0) ::_exit(to_int(ExitCode::Interrupted));
  stop_asked = 1;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, what_is_said.data(), what_is_said.size());
}

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGXFSZ};
std::array<struct sigaction, kSignals.size()> before;

}  // namespace

StopRequest::StopRequest(std::string_view said) {
  stop_asked = 0;
  what_is_said = said;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = kSignals[i] == SIGXFSZ ? SIG_IGN : on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(kSignals[i], &action, &before[i]);
  }
}

StopRequest::~StopRequest() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before[i], nullptr);
}

bool StopRequest::asked() const { return stop_asked != 0; }

}  // namespace ullage::program
