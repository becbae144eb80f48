// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/launcher.h"

#include "ullage/base/exit_code.h"
#include "ullage/cli/tree_watch.h"
#include "ullage/store/process_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>

namespace ullage::cli {
namespace {

using CStrings = std::vector<char*>;

CStrings pointers(const std::vector<std::string>& words) {
  CStrings out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

// Returns `library` followed by the entries of `before`. Blanks and colons end a name, as for the loader. If `before`
// begins with `library` already (a run inside a run), it stays as it is.
std::string preload_list(const std::string& library, const char* before) {
  if (before == nullptr || *before == '\0') return library;
  const std::string_view rest = before;
  if (rest.substr(0, rest.find_first_of(" :")) == library) return std::string(rest);
  return library + ":" + std::string(rest);
}

// Runs a script that has no "#!" line with /bin/sh, as execvp does.
void exec_by_shell(const std::filesystem::path& file, CStrings words) {
  std::string shell = "/bin/sh";
  std::string script = file.string();
  words[0] = shell.data();
  words.insert(words.begin() + 1, script.data());
  ::execv(shell.c_str(), words.data());
}

// Changes the folder and redirects the outputs as asked for. Returns false and leaves errno if that fails.
bool set_up(const Launch& launch) {
  if (!launch.folder.empty() && ::chdir(launch.folder.c_str()) != 0) return false;
  if (launch.out >= 0 && ::dup2(launch.out, 1) != 1) return false;
  if (launch.err >= 0 && ::dup2(launch.err, 2) != 2) return false;
  if (launch.outputs.empty()) return true;
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out = ::open(launch.outputs.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  return in >= 0 && out >= 0 && ::dup2(in, 0) == 0 && ::dup2(out, 1) == 1 && ::dup2(out, 2) == 2;
}

[[noreturn]] void become(const Launch& launch, const store::Ledger& ledger, SignalForwarder& signals, pid_t parent,
                         int pipe) {
  signals.undo_in_child();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::raise(SIGTERM);  // the launcher died before the line above
  if (launch.has_ledger) ::setenv(store::Ledger::kVariable, ledger.environment_value(parent).c_str(), 1);
  if (!launch.preload.empty()) {
    ::setenv("LD_PRELOAD", preload_list(launch.preload, std::getenv("LD_PRELOAD")).c_str(), 1);
  }
  for (const auto& [name, value] : launch.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (set_up(launch)) {
    CStrings words = pointers(launch.words);
    ::execv(launch.file.c_str(), words.data());
    if (errno == ENOEXEC) exec_by_shell(launch.file, words);
  }
  const int reason = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(pipe, &reason, sizeof reason);
  ::_exit(127);
}

// Waits until the child has executed the program (returns 0) or failed to (returns its errno).
int exec_failure(int heard) {
  int reason = 0;
  ssize_t n = 0;
  while ((n = ::read(heard, &reason, sizeof reason)) < 0 && errno == EINTR) {
  }
  ::close(heard);
  return n == sizeof reason ? reason : 0;
}

struct Ended {
  int status = 0;
  rusage usage = {};
  bool out_of_time = false;
  bool had_too_little = false;  // TreeWatch::has_ended_it()
};

bool is_out_of_time(const Launch& launch) {
  return launch.deadline && std::chrono::steady_clock::now() >= *launch.deadline;
}

// Waits for the child to end, or for a reason to kill it. Does not reap it. Returns whether it ended.
bool has_ended(pid_t child, const Launch& launch) {
  constexpr std::chrono::milliseconds kBetweenLooks{10};
  const auto ended = [child](int more) {
    siginfo_t info = {};
    while (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT | more) != 0 && errno == EINTR) {
    }
    return info.si_pid == child;
  };
  if (!launch.deadline && !launch.is_to_end) return ended(0);
  while (!is_out_of_time(launch)) {
    if (ended(WNOHANG)) return true;
    if (launch.is_to_end && launch.is_to_end(child)) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return ended(WNOHANG);
}

// Waits for the child's end, and only then reaps it. While it is a zombie its process id is not used again, so a signal
// that is passed on cannot hit another process.
Ended wait_for(pid_t child, const Launch& launch, SignalForwarder& signals, std::optional<TreeWatch>& watch) {
  Ended ended;
  if (!has_ended(child, launch)) {
    ended.out_of_time = is_out_of_time(launch);
    store::kill_tree(child);
    siginfo_t info = {};
    while (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
  }
  ended.had_too_little = watch && watch->has_ended_it();
  watch.reset();  // before the process id may be used again
  signals.forward_to(0);
  while (::wait4(child, &ended.status, 0, &ended.usage) < 0 && errno == EINTR) {
  }
  return ended;
}

}  // namespace

std::variant<report::ProcessEnd, NotStarted> launch(const Launch& launch, store::Ledger& ledger,
                                                    SignalForwarder& signals) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return NotStarted{errno};
  ::signal(SIGCHLD,
           SIG_DFL);  // if our parent ignored it, the kernel would reap the child before we read its figures
  const auto groups = memory_groups(launch.roots);
  const auto kills_before = oom_kills(groups, launch.roots);
  const auto start = std::chrono::steady_clock::now();

  signals.hold();
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become(launch, ledger, signals, self, ends[1]);
  const int fork_failure = child < 0 ? errno : 0;
  ::close(ends[1]);
  if (child > 0) signals.forward_to(child);
  signals.release();
  const int reason = child < 0 ? fork_failure : exec_failure(ends[0]);
  if (child < 0) ::close(ends[0]);
  if (child < 0) return NotStarted{reason};

  std::optional<TreeWatch> watch;
  if (reason == 0) watch.emplace(ledger.page(), child);
  if (reason == 0 && launch.on_start) launch.on_start();
  const Ended ended = wait_for(child, launch, signals, watch);
  if (reason != 0) return NotStarted{reason};
  const auto kills_after = oom_kills(groups, launch.roots);

  report::ProcessEnd end;
  end.command = launch.words;
  end.wall = Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  end.out_of_time = ended.out_of_time;
  if (WIFSIGNALED(ended.status)) end.signal = WTERMSIG(ended.status);
  end.exit_code = end.signal ? 128 + *end.signal : WEXITSTATUS(ended.status);
  if (ended.had_too_little && end.signal == SIGKILL) {
    end.signal.reset();
    end.exit_code = to_int(ExitCode::Infeasible);
  }
  end.peak = Bytes{static_cast<std::uint64_t>(ended.usage.ru_maxrss)} * 1024;
  if (kills_before && kills_after) {
    end.oom_kills = *kills_after > *kills_before ? report::OomKills::Rose : report::OomKills::Unchanged;
  }
  return end;
}

}  // namespace ullage::cli
