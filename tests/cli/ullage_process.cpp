// SPDX-License-Identifier: Apache-2.0
#include "ullage_process.h"

#include "folders.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace ullage::cli {

namespace fs = std::filesystem;

ShippedFolder::ShippedFolder() {
  std::string name = (fs::temp_directory_path() / "ullage-cli-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = fs::canonical(name);
  const fs::path bin = programs_folder();
  fs::copy_file(bin / "ullage", path_ / "ullage");
  fs::copy_file(bin / "fake_program", path_ / "ullage-fake");
  fs::copy_file(bin / "fake_program", path_ / "ullage-fern");
  fs::copy_file(bin / "fake_program", path_ / "ullage-locked");
  fs::permissions(path_ / "ullage-locked", fs::perms::owner_read);
  std::ofstream(path_ / "ullage-notes.txt") << "no program\n";
  // Tests use this fifo instead of /dev/null where they give a report something that is not a regular file. A faulty
  // launcher run by root could replace the real device by renaming over it, for the whole machine.
  if (mkfifo((path_ / "fifo").c_str(), 0600) != 0) throw std::runtime_error("mkfifo");
  fs::permissions(path_ / "ullage-notes.txt", fs::perms::owner_all);
}

ShippedFolder::~ShippedFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

nlohmann::json ShippedFolder::json(const std::string& name) const {
  std::ifstream in(path_ / name);
  return in ? nlohmann::json::parse(in) : nlohmann::json();
}

Process::Process(const Words& words, const std::map<std::string, std::string>& variables) {
  int pipes[2][2];
  for (auto& ends : pipes) {
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  }
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(pipes[0][1], 1);
    dup2(pipes[1][1], 2);
    unsetenv("ULLAGE_LEDGER");
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    execv(argv[0], argv.data());
    _exit(98);
  }
  for (int i = 0; i < 2; ++i) {
    close(pipes[i][1]);
    ends_[i] = pipes[i][0];
  }
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (int end : ends_) {
    if (end >= 0) close(end);
  }
}

bool Process::read_some() {
  pollfd waiting[2] = {{ends_[0], POLLIN, 0}, {ends_[1], POLLIN, 0}};
  if (ends_[0] < 0 && ends_[1] < 0) return false;
  poll(waiting, 2, -1);
  for (int i = 0; i < 2; ++i) {
    if (waiting[i].revents == 0) continue;
    char buffer[4096];
    const ssize_t n = read(ends_[i], buffer, sizeof buffer);
    if (n > 0) {
      texts_[i].append(buffer, static_cast<std::size_t>(n));
    } else {
      close(std::exchange(ends_[i], -1));
    }
  }
  return true;
}

void Process::until(const std::string& text) {
  while (texts_[0].find(text) == std::string::npos && read_some()) {
  }
  EXPECT_NE(texts_[0].find(text), std::string::npos) << texts_[0] << texts_[1];
}

void Process::send(int signal) const { kill(pid_, signal); }

Finished Process::finish() {
  while (read_some()) {
  }
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), texts_[0], texts_[1]};
}

}  // namespace ullage::cli
