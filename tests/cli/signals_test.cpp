// SPDX-License-Identifier: Apache-2.0
// Which processes get Ctrl-C, and that the launcher survives to write its summary.
#include "ullage/cli/signals.h"
#include "ullage_process.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace ullage::cli {
namespace {

class Signals : public testing::Test {
 protected:
  Words run(Words words) {
    words.insert(words.begin(), {folder_.file("ullage"), "run", "--report", folder_.file("run.json")});
    return words;
  }
  ShippedFolder folder_;
};

TEST_F(Signals, AnInterruptSentToTheLauncherAloneReachesTheProgramOnce) {
  Process process(run({"fake", "attach", "count-int", "exit=130"}));
  process.until("ready");
  process.send(SIGINT);
  const Finished end = process.finish();
  EXPECT_EQ(end.out, "ready\n1 interrupts\n");
  EXPECT_EQ(end.exit_code, 130);
  EXPECT_NE(end.err.find("ullage: interrupted"), std::string::npos) << end.err;
  EXPECT_EQ(folder_.json("run.json")["outcome"], "interrupted");
}

TEST_F(Signals, EachInterruptIsPassedOn) {
  Process process(run({"fake", "count-int", "exit=130"}));
  process.until("ready");
  process.send(SIGINT);
  usleep(100'000);
  process.send(SIGINT);
  EXPECT_EQ(process.finish().out, "ready\n2 interrupts\n");
}

TEST(SignalForwarder, PassesASignalOnToTheProgramsOfAllObjects) {
  struct sigaction before = {};
  sigaction(SIGINT, nullptr, &before);
  const auto program = [](SignalForwarder& signals) {
    signals.hold();
    const pid_t child = fork();
    if (child == 0) {
      signals.undo_in_child();
      while (true) pause();
    }
    signals.forward_to(child);
    signals.release();
    return child;
  };
  const auto ended_by = [](pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  };
  {
    SignalForwarder one;
    const pid_t first = program(one);
    {
      SignalForwarder two;
      const pid_t second = program(two);
      raise(SIGTERM);
      EXPECT_EQ(ended_by(second), SIGTERM);
    }
    EXPECT_EQ(ended_by(first), SIGTERM);
    one.forward_to(0);
    raise(SIGINT);  // still handled
    EXPECT_EQ(SignalForwarder::received(), SIGINT);
  }
  struct sigaction after = {};
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

// Returns all output of a process group on a terminal. The keys are typed once "ready" was read. The launcher is
// stopped meanwhile, so that the program handles its own signal before the launcher can send another. Two pending
// signals of one kind would count as one.
struct Terminal {
  std::string text;
  int status = 0;
};
Terminal typed(const Words& words, const std::string& keys) {
  Terminal terminal;
  int master = -1;
  const pid_t pid = forkpty(&master, nullptr, nullptr, nullptr);
  if (pid == 0) {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(98);
  }
  bool sent = false;
  char buffer[1024];
  for (ssize_t n = 0; (n = read(master, buffer, sizeof buffer)) > 0;) {  // ends with EIO when the last writer is gone
    terminal.text.append(buffer, static_cast<std::size_t>(n));
    if (sent || terminal.text.find("ready") == std::string::npos) continue;
    kill(pid, SIGSTOP);
    waitpid(pid, nullptr, WUNTRACED);
    sent = write(master, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size());
    usleep(100'000);
    kill(pid, SIGCONT);
  }
  waitpid(pid, &terminal.status, 0);
  close(master);
  return terminal;
}

TEST_F(Signals, CtrlCOfATerminalReachesTheProgramOnceAndTheSummaryIsPrinted) {
  const Terminal terminal = typed(run({"fake", "attach", "count-int", "exit=130"}), "\x03");
  EXPECT_NE(terminal.text.find("1 interrupts"), std::string::npos) << terminal.text;
  EXPECT_NE(terminal.text.find("ullage: interrupted"), std::string::npos) << terminal.text;
  ASSERT_TRUE(WIFEXITED(terminal.status));
  EXPECT_EQ(WEXITSTATUS(terminal.status), 130);
}

TEST_F(Signals, CtrlCEndsAProgramThatDoesNothingAboutIt) {
  const Terminal terminal = typed(run({"fake", "wait"}), "\x03");
  ASSERT_TRUE(WIFEXITED(terminal.status));
  EXPECT_EQ(WEXITSTATUS(terminal.status), 130);
  EXPECT_EQ(folder_.json("run.json")["outcome"], "interrupted");
}

TEST_F(Signals, TheLauncherOutlivesAnInterruptThatTheProgramIgnores) {
  Process process(run({"fake", "ignore-int", "nap=300", "print=end"}));
  process.until("ready");
  process.send(SIGINT);
  const Finished end = process.finish();
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.out, "ready\nend\n");
  EXPECT_NE(end.err.find("ullage: done"), std::string::npos) << end.err;
}

TEST_F(Signals, TerminateAndHangUpArePassedOn) {
  for (int signal : {SIGTERM, SIGHUP}) {
    Process process(run({"fake", "wait"}));
    process.until("ready");
    process.send(signal);
    const Finished end = process.finish();
    EXPECT_EQ(end.exit_code, 128 + signal);
    EXPECT_NE(end.err.find("ullage: failed, killed by signal " + std::to_string(signal)), std::string::npos) << end.err;
  }
}

TEST_F(Signals, WhatWasIgnoredAtTheStartStaysIgnored) {
  const std::string line =
      "trap '' HUP; exec " + folder_.file("ullage") + " run --quiet -- sh -c 'kill -HUP $PPID $$; echo alive'";
  const Finished end = Process({"/bin/sh", "-c", line}).finish();
  EXPECT_EQ(end.out, "alive\n");
  EXPECT_EQ(end.exit_code, 0);
}

TEST_F(Signals, TheProgramStaysInTheProcessGroup) {
  EXPECT_EQ(Process(run({"fake", "group"})).finish().out, "same group\n");
}

TEST_F(Signals, TheProgramEndsWhenTheLauncherIsKilled) {
  Process process(run({"fake", "wait"}));
  process.until("ready");
  process.send(SIGKILL);
  EXPECT_EQ(process.finish().exit_code, 137);  // returns only when the program, too, has closed the pipe
}

TEST_F(Signals, AProgramThatIsStoppedAndGoesOnIsWaitedFor) {
  Process process(run({"--", "sh", "-c", "echo ready; (sleep 0.2; kill -CONT $$) & kill -STOP $$; exit 6"}));
  EXPECT_EQ(process.finish().exit_code, 6);
}

}  // namespace
}  // namespace ullage::cli
