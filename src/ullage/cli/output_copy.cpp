// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/output_copy.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace ullage::cli {
namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 10;  // a progress bar may write for hours without a line end
constexpr int kLook = 100;                                   // ms between two checks whether the program has ended

// Keeps the last lines of several streams, ordered by when each line's end came.
class KeptLines final {
 public:
  void add(std::string& begun, std::string_view text) {
    begun.append(text);
    if (const std::size_t end = begun.rfind('\n'); end != begun.npos) {
      take(std::string_view(begun).substr(0, end + 1));
      begun.erase(0, end + 1);
    } else if (begun.size() > kLongestLine) {
      take(begun);
      begun.clear();
    }
  }

  // Drops what is older than the last kKept bytes, at the end of a line if there is one.
  std::string last() && {
    if (text_.size() <= OutputCopy::kKept) return std::move(text_);
    const std::size_t from = text_.size() - OutputCopy::kKept;
    const std::size_t end = text_.find('\n', from);
    return text_.substr(end == text_.npos ? from : end + 1);
  }

 private:
  void take(std::string_view lines) {
    text_.append(lines);
    if (text_.size() > 2 * OutputCopy::kKept) text_ = std::move(*this).last();
  }

  std::string text_;
};

// One output: the program's end, ours, and where it goes.
struct Way {
  int program = -1;  // the program writes here
  int ours = -1;     // we read here; -1: ended
  int to = -1;       // STDOUT_FILENO or STDERR_FILENO
  bool terminal = false;
  std::string begun;  // a line that has not ended yet
};

void close_it(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

// Makes a pseudoterminal that passes bytes on as they are, with the size of terminal `like`. False: there is none.
bool make_terminal(Way& way, int like) {
  const int ours = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (ours < 0) return false;
  char name[64] = "";
  const bool unlocked = ::grantpt(ours) == 0 && ::unlockpt(ours) == 0 && ::ptsname_r(ours, name, sizeof name) == 0;
  const int program = unlocked ? ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
  if (program < 0) return ::close(ours), false;
  termios mode = {};
  if (::tcgetattr(like, &mode) == 0) {
    mode.c_oflag &= ~static_cast<tcflag_t>(OPOST);  // the real terminal does that
    ::tcsetattr(program, TCSANOW, &mode);
  }
  winsize size = {};
  if (::ioctl(like, TIOCGWINSZ, &size) == 0) ::ioctl(program, TIOCSWINSZ, &size);
  way.program = program, way.ours = ours, way.terminal = true;
  return true;
}

bool make_way(Way& way, int to) {
  way.to = to;
  if (::isatty(to) != 0 && make_terminal(way, to)) return true;
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  way.ours = ends[0], way.program = ends[1];
  return true;
}

bool same_output() {
  struct stat out = {}, err = {};
  return ::fstat(STDOUT_FILENO, &out) == 0 && ::fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
         out.st_ino == err.st_ino;
}

// Writes all of `text`. False: nobody reads from `to` any more.
bool write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(to, text.data(), text.size());
    if (n > 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (n < 0 && errno == EAGAIN) {
      pollfd room = {to, POLLOUT, 0};
      ::poll(&room, 1, kLook);
    } else if (n < 0 && errno != EINTR) {
      return false;
    }
  }
  return true;
}

// A terminal's window may change while the program runs. The program gets SIGWINCH from the real one and asks ours.
void follow_size(const Way& way) {
  winsize real = {}, now = {};
  if (::ioctl(way.to, TIOCGWINSZ, &real) != 0 || ::ioctl(way.ours, TIOCGWINSZ, &now) != 0) return;
  if (std::memcmp(&real, &now, sizeof real) != 0) ::ioctl(way.ours, TIOCSWINSZ, &real);
}

}  // namespace

struct OutputCopy::State {
  std::array<Way, 2> ways;  // the second is unused if both outputs are one
  KeptLines kept;
  std::atomic<bool> ended{false};  // the program has ended

  ~State() {
    for (Way& way : ways) close_it(way.program), close_it(way.ours);
  }

  bool open() const { return ways[0].ours >= 0 || ways[1].ours >= 0; }

  // Copies what can be read now. If nobody reads our output any more, closes the way. The program's next write then
  // fails, as it would without us.
  void copy_from(Way& way) {
    char buffer[std::size_t{64} << 10];
    const ssize_t n = ::read(way.ours, buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) return close_it(way.ours);  // a pseudoterminal ends with EIO
    const std::string_view text(buffer, static_cast<std::size_t>(n));
    kept.add(way.begun, text);
    if (!write_all(way.to, text)) close_it(way.ours);
  }

  // Waits at most `wait` ms for output and copies it. Returns whether there was any.
  bool copy_some(int wait) {
    pollfd heard[2] = {{ways[0].ours, POLLIN, 0}, {ways[1].ours, POLLIN, 0}};  // -1 is left out
    if (::poll(heard, 2, wait) <= 0) return false;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (ways[i].ours < 0 || heard[i].revents == 0) continue;
      if (ways[i].terminal) follow_size(ways[i]);
      copy_from(ways[i]);
    }
    return true;
  }

  void run() {
    while (open()) {
      const bool last = ended.load();  // read before copying: all that the program wrote can be read by then
      for (Way& way : ways) {
        if (way.terminal && way.ours >= 0) follow_size(way);
      }
      if (!copy_some(last ? 0 : kLook) && last) return;
    }
  }
};

Result<OutputCopy> OutputCopy::make() {
  OutputCopy copy(new State);
  Way &out = copy.state_->ways[0], &err = copy.state_->ways[1];
  if (make_way(out, STDOUT_FILENO) && (same_output() || make_way(err, STDERR_FILENO))) return copy;
  return Error{Error::Kind::System, std::string("the program's output cannot be read: ") + std::strerror(errno), ""};
}

OutputCopy::OutputCopy(OutputCopy&& other) noexcept
    : state_(std::exchange(other.state_, nullptr)), thread_(std::move(other.thread_)) {}

OutputCopy::~OutputCopy() {
  if (thread_.joinable()) {
    state_->ended.store(true);
    thread_.join();
  }
  delete state_;
}

int OutputCopy::program_stdout() const { return state_->ways[0].program; }

int OutputCopy::program_stderr() const {
  return state_->ways[1].program >= 0 ? state_->ways[1].program : state_->ways[0].program;
}

void OutputCopy::start() {
  for (Way& way : state_->ways) close_it(way.program);
  thread_ = std::thread([state = state_] {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);  // write() then fails with EPIPE; the program's own mask stays
    state->run();
  });
}

std::string OutputCopy::finish() {
  if (thread_.joinable()) {
    state_->ended.store(true);
    thread_.join();
  }
  if (state_->open() && ::fork() == 0) {
    ::signal(SIGPIPE, SIG_IGN);
    while (state_->open()) state_->copy_some(-1);
    ::_exit(0);
  }
  for (Way& way : state_->ways) {
    close_it(way.ours);
    if (!way.begun.empty()) state_->kept.add(way.begun, "\n");
  }
  return std::move(state_->kept).last();
}

}  // namespace ullage::cli
