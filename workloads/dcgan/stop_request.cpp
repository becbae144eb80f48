// SPDX-License-Identifier: Apache-2.0
#include "dcgan/stop_request.h"

#include "ullage/base/exit_code.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <string_view>

namespace ullage::dcgan {
namespace {

volatile std::sig_atomic_t stop_asked = 0;

void on_signal(int) {
  if (stop_asked != 0) ::_exit(to_int(ExitCode::Interrupted));
  stop_asked = 1;
  constexpr std::string_view kSaid = "\nullage-dcgan: finishing this step, then saving; once more ends at once\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kSaid.data(), kSaid.size());
}

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGXFSZ};
std::array<struct sigaction, kSignals.size()> before;

}  // namespace

StopRequest::StopRequest() {
  stop_asked = 0;
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

}  // namespace ullage::dcgan
