// SPDX-License-Identifier: Apache-2.0
// A program for the tests of `ullage run`. Each argument is an action, carried out in order. It writes into the ledger
// what the real runtime would write, so that the launcher, the summary and the report can be tested without torch.

#include "fake_training.h"
#include "ullage/base/sizes.h"
#include "ullage/store/budget.h"
#include "ullage/store/ledger.h"
#include "ullage/store/process_memory.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>

namespace {

using ullage::Bytes;
using ullage::cli::FakeTraining;
using Kind = FakeTraining::Kind;
namespace store = ullage::store;
namespace trace = ullage::trace;

volatile sig_atomic_t g_interrupts = 0;
store::LedgerSlot* g_slot = nullptr;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "fake_program: %s\n", why.c_str());
  std::exit(99);
}

Bytes bytes(const std::string& text) {
  const auto read = ullage::parse_bytes(text);
  if (!read) give_up(read.error().text());
  return *read;
}

store::LedgerSlot& slot() {
  if (g_slot == nullptr) give_up("not attached");
  return *g_slot;
}

void attach(const std::string&) {
  auto attached = store::Ledger::attach_from_environment();
  if (!attached) give_up(attached.error().text());
  static store::Ledger ledger = std::move(attached).value();
  g_slot = ledger.claim_slot();
  slot().outside.store(store::resident_now().count);
  slot().outside_expected.store(slot().outside.load() + store::Budget::kWarmUp.count);
}

void look(const std::string&) {
  store::raise_to(slot().rss_peak, store::resident_peak().count);
  slot().outside_at_peak.store(slot().outside.load());
}

void steps(const std::string& count) {
  for (int n = std::atoi(count.c_str()); n > 0; --n) {
    const auto step = slot().steps.fetch_add(1) + 1;
    slot().step_us[step % store::LedgerSlot::kStepTimes].store(1500);
  }
}

// Allocates memory and writes to it, one MiB at a time; keeps the ledger's figures up to date.
void eat(const std::string& size) {
  const std::size_t total = bytes(size).count;
  char* place = static_cast<char*>(mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (place == MAP_FAILED) give_up("mmap");
  for (std::size_t done = 0; done < total; done += 1 << 20) {
    std::memset(place + done, 1, std::min<std::size_t>(1 << 20, total - done));
    if (g_slot == nullptr) continue;
    store::raise_to(slot().pool_live_peak, done);
    store::raise_to(slot().pool_resident_peak, done);
    look("");
  }
}

void say_spill_place(const std::string&) {
  auto attached = store::Ledger::attach_from_environment();
  if (!attached) give_up(attached.error().text());
  const store::LedgerPage& page = attached->page();
  std::printf("%s %llu\n", page.spill_folder.get().c_str(), static_cast<unsigned long long>(page.spill_limit.load()));
}

void say_plan(const std::string&) {
  auto attached = store::Ledger::attach_from_environment();
  if (!attached) give_up(attached.error().text());
  const store::LedgerPage& page = attached->page();
  std::printf("%s %llu\n", page.plan_file.get().c_str(), static_cast<unsigned long long>(page.no_plan.load()));
}

// Reports a plan with this peak, adopted at step 4.
void follow_plan(const std::string& size) {
  slot().plans.store(1);
  slot().plan_adopted_at_step.store(4);
  slot().plan_steps.store(2);
  slot().plan_peak.store(bytes(size).count);
  slot().plan_step_us.store(1000);
  slot().plan_overhead_us.store(500);
  slot().plan_recomputes.store(3);
  slot().recomputed_ops.store(6);
  slot().recompute_us.store(250'000);
}

// Reports that twice the size was spilled and once the size restored.
void move(const std::string& size) {
  slot().spilled.store(2 * bytes(size).count);
  slot().restored.store(bytes(size).count);
  slot().spill_wait_us.store(500'000);
  slot().spill_background_us.store(1'500'000);
}

void say_card(const std::string&) {
  auto attached = store::Ledger::attach_from_environment();
  if (!attached) give_up(attached.error().text());
  const store::LedgerPage& page = attached->page();
  std::printf("%llu %llu %llu\n", static_cast<unsigned long long>(page.card.load()),
              static_cast<unsigned long long>(page.budget.load()),
              static_cast<unsigned long long>(page.host_memory.load()));
}

// Writes the budget as the runtime does after `--memory auto` on a card.
void work_out_budget(const std::string& size) {
  auto attached = store::Ledger::attach_from_environment();
  if (!attached) give_up(attached.error().text());
  attached->page().budget.store(bytes(size).count);
}

// Reports so many resident bytes on a card, a quarter of them outside the pool.
void hold_on_card(const std::string& size) {
  const Bytes held = bytes(size);
  slot().rss.store(held.count);
  slot().rss_peak.store(held.count);
  slot().outside_at_peak.store((held / 4).count);
  slot().pool_resident_peak.store((held - held / 4).count);
}

void say_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  std::puts(value != nullptr ? value : "(not set)");
}

void refuse(const std::string& size) {
  slot().last_request.store(bytes(size).count);
  slot().refused.fetch_add(1);
}

// Prints "ready", waits for the first SIGINT, then half a second for more of them, and prints how many came.
void count_interrupts(const std::string&) {
  struct sigaction action = {};
  action.sa_handler = [](int) { g_interrupts = g_interrupts + 1; };
  sigaction(SIGINT, &action, nullptr);
  std::puts("ready");
  std::fflush(stdout);
  while (g_interrupts == 0) poll(nullptr, 0, 10);
  for (int left = 50; left > 0; --left) poll(nullptr, 0, 10);
  std::printf("%d interrupts\n", static_cast<int>(g_interrupts));
  std::fflush(stdout);
}

void wait_forever(const std::string&) {
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}

void nap(const std::string& milliseconds) {
  std::puts("ready");
  std::fflush(stdout);
  for (int left = std::atoi(milliseconds.c_str()); left > 0; left -= 10) poll(nullptr, 0, 10);
}

// Starts a process that holds so many bytes until this one ends.
void start_worker(const std::string& size) {
  int ends[2];
  if (pipe(ends) != 0) give_up("pipe");
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    eat(size);
    if (write(ends[1], "", 1) != 1) give_up("write");
    for (;;) pause();
  }
  char ready = 0;
  if (read(ends[0], &ready, 1) != 1) give_up("read");
}

std::int64_t number(const std::string& text) { return std::atoll(text.c_str()); }

void write_trace(trace::EventLog& log, trace::TraceFile file, const trace::ProcessFigures& figures, int steps) {
  static store::Ledger ledger = [] {
    auto attached = store::Ledger::attach_from_environment();
    if (!attached) give_up(attached.error().text());
    return std::move(attached).value();
  }();
  const store::LedgerPage& page = ledger.page();
  const std::string path = page.record_file.get();
  if (path.empty()) return;
  const bool stops = page.stop_after.load() != 0 && static_cast<std::uint64_t>(steps) >= page.stop_after.load();
  file.torch = "2.13.0";
  std::ofstream out(path, std::ios::binary);
  log.write(file, figures, stops ? trace::Take::End::StepBorder : trace::Take::End::Program, out);
  slot().recorded_steps.store(steps > 1 ? static_cast<std::uint64_t>(steps) : 0);
  slot().recorded.store(out.flush() ? 1 : 0);
  slot().stopped_at_border.store(stops ? 1 : 0);
  if (stops) _exit(0);
}

// Acts like the runtime in a program that trains. If the ledger names a trace file, writes it. If the ledger also names
// a step to stop after, and the training has that many steps, exits there.
void train(const FakeTraining& training) {
  attach("");
  trace::EventLog log;
  log.begin_take({});
  record(training, log);
  slot().steps.store(static_cast<std::uint64_t>(training.steps));
  store::raise_to(slot().pool_live_peak, peak_of(training));
  store::raise_to(slot().pool_resident_peak, peak_of(training));
  look("");
  write_trace(log, {}, figures_of(training), training.steps);
}

// The side of the pictures: an option for which prediction knows no law.
std::int64_t side = 16;
void take_side(const std::string& value) { side = number(value); }

// More options of that kind, where they were given: of `rows` a larger value takes more memory, of `parts` less.
std::int64_t rows = 0, parts = 0;
void take_rows(const std::string& value) { rows = number(value); }
void take_parts(const std::string& value) { parts = number(value); }

// An option that is a knob too: its value is the batch asked for.
std::int64_t batch_asked = 0;
void take_batch(const std::string& value) { batch_asked = number(value); }

constexpr std::int64_t kMostRows = 64;

std::vector<ullage::Choice> choices() {
  std::vector<ullage::Choice> all = {{"side", side, {8, 16, 32, 64}}};
  std::vector<std::int64_t> values(kMostRows);
  std::iota(values.begin(), values.end(), 1);
  if (rows > 0) all.push_back({"rows", rows, values, {}, "rounding"});
  if (parts > 0) all.push_back({"parts", parts, values});
  if (batch_asked > 0) all.push_back({"batch", batch_asked, values});
  return all;
}

std::int64_t samples_of(std::int64_t batch) {
  return batch * side / 8 * (rows > 0 ? rows : 1) * (parts > 0 ? kMostRows + 1 - parts : 1);
}

// Acts like a shipped program that records the takes of a rehearsal itself and asks for a prediction at `batch`, or at
// that of --batch.
void rehearse(const std::string& batch) {
  attach("");
  auto attached = store::Ledger::attach_from_environment();
  std::string sizes = attached->page().rehearsal.get();
  if (sizes.empty()) give_up("no rehearsal");
  const std::int64_t asked = batch_asked > 0 ? batch_asked : number(batch);
  if (sizes == "auto") sizes = asked < 2 ? "batch=1" : "batch=2,3,4";
  trace::EventLog log;
  trace::TraceFile file;
  file.at = {{"batch", asked}};
  file.phases_left_out = {"checkpoint"};
  file.choices = choices();
  if (rows > 0) file.changes = {{"--rows " + std::to_string(rows) + " --allow fewer", "rounding"}};
  FakeTraining training;
  training.clears = true;
  for (std::istringstream in(sizes.substr(6)); std::getline(in, sizes, ',');) {
    const std::vector<ullage::Knob> knobs = {{"batch", number(sizes)}};
    training.batch = samples_of(number(sizes));
    log.begin_take(knobs);
    record(training, log);
    log.end_take(figures_of(training), trace::Take::End::StepBorder);
  }
  write_trace(log, file, figures_of(training), 3);
}

// Rehearses as above, or works: says with how many rows.
void work(const std::string& batch) {
  auto attached = store::Ledger::attach_from_environment();
  if (!attached) give_up(attached.error().text());
  if (!attached->page().rehearsal.get().empty()) return rehearse(batch);
  attach("");
  slot().changes.set("rounding --rows " + std::to_string(rows) + " --allow fewer\n");
  std::printf("%lld rows\n", static_cast<long long>(rows));
}

// Returns the values of one knob in "width=144,160;height=128". For "auto": three values from 144 on.
std::vector<std::int64_t> side_values(const std::string& sizes, const std::string& knob) {
  if (sizes == "auto") return {144, 160, 176};
  std::vector<std::int64_t> values;
  const std::size_t at = sizes.find(knob + "=") + knob.size() + 1;
  std::string value;
  for (std::istringstream in(sizes.substr(at, sizes.find(';', at) - at)); std::getline(in, value, ',');) {
    values.push_back(number(value));
  }
  return values;
}

// The same for pictures of `size`, such as "896x640". The knobs are the sides; a sample is a token of 16 x 16 pixels.
void rehearse_picture(FakeTraining::Kind kind, const std::string& size) {
  attach("");
  auto attached = store::Ledger::attach_from_environment();
  const std::string sizes = attached->page().rehearsal.get();
  if (sizes.empty()) give_up("no rehearsal");
  trace::EventLog log;
  trace::TraceFile file;
  file.at = {{"width", number(size)}, {"height", number(size.substr(size.find('x') + 1))}};
  file.sides = {"width", "height"};
  FakeTraining training{kind};
  training.clears = true;
  for (const std::int64_t width : side_values(sizes, "width")) {
    for (const std::int64_t height : side_values(sizes, "height")) {
      training.batch = width * height / 256;
      log.begin_take(std::vector<ullage::Knob>{{"width", width}, {"height", height}});
      record(training, log);
      log.end_take(figures_of(training), trace::Take::End::StepBorder);
    }
  }
  write_trace(log, file, figures_of(training), 3);
}

void fail_below_4(const std::string& batch) {
  if (number(batch) >= 4) return;
  std::fprintf(stderr, "Traceback (most recent call last):\nExpected more than 1 value per channel when training\n");
  std::exit(1);
}

void read_file(const std::string& file) {
  if (std::ifstream(file)) return;
  std::fprintf(stderr, "%s: no such file\n", file.c_str());
  std::exit(1);
}

void say_group(const std::string&) { std::puts(getpgrp() == getpgid(getppid()) ? "same group" : "another group"); }

const std::map<std::string, std::function<void(const std::string&)>> kDeeds = {
    {"attach", attach},
    {"look", look},
    {"steps", steps},
    {"eat", eat},
    {"refuse", refuse},
    {"move", move},
    {"plan", say_plan},
    {"follow-plan", follow_plan},
    {"floor", [](const std::string& size) { slot().least_budget.store(bytes(size).count); }},
    {"spill-place", say_spill_place},
    {"card", say_card},
    {"work-out-budget", work_out_budget},
    {"hold-on-card", hold_on_card},
    {"variable", say_variable},
    {"say", [](const std::string& text) { slot().message.set(text); }},
    {"state", [](const std::string& text) { slot().state_sha256.set(text); }},
    {"infeasible", [](const std::string&) { slot().infeasible.store(1); }},
    {"print", [](const std::string& text) { std::printf("%s\n", text.c_str()); }},
    {"train",
     [](const std::string& batch) {
       train({Kind::Affine, number(batch)});
     }},
    {"train-constant",
     [](const std::string& batch) {
       train({Kind::Constant, number(batch)});
     }},
    {"train-lawless",
     [](const std::string& batch) {
       train({Kind::Lawless, number(batch)});
     }},
    {"train-loops",
     [](const std::string& batch) {
       train({Kind::Loops, number(batch)});
     }},
    {"train-sorts",
     [](const std::string& batch) {
       train({Kind::Sorts, number(batch)});
     }},
    {"train-once",
     [](const std::string& batch) {
       train({Kind::Affine, number(batch), 1});
     }},
    {"fail-below-4", fail_below_4},
    {"rehearse", rehearse},
    {"work", work},
    {"--allow", [](const std::string&) {}},
    {"fewer", [](const std::string&) { std::puts("fewer are allowed"); }},
    {"rehearse-picture", [](const std::string& size) { rehearse_picture(Kind::Affine, size); }},
    {"rehearse-convolutions", [](const std::string& size) { rehearse_picture(Kind::Convolves, size); }},
    {"--side", take_side},
    {"--rows", take_rows},
    {"--parts", take_parts},
    {"--batch", take_batch},
    {"count-start", [](const std::string& file) { std::ofstream(file, std::ios::app) << '.'; }},
    {"lose-trace", [](const std::string&) { attach(""), slot().message.set("the disk is full"); }},
    {"read", read_file},
    {"write", [](const std::string& file) { std::ofstream(file) << "written\n"; }},
    {"where", [](const std::string& file) { std::ofstream(file) << std::filesystem::current_path().string() << '\n'; }},
    {"complain", [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }},
    {"ignore-int", [](const std::string&) { signal(SIGINT, SIG_IGN); }},
    {"count-int", count_interrupts},
    {"wait", wait_forever},
    {"nap", nap},
    {"worker", start_worker},
    {"group", say_group},
    {"kill", [](const std::string& number) { std::fflush(stdout), kill(getpid(), std::atoi(number.c_str())); }},
    {"killable", [](const std::string&) { std::ofstream("/proc/self/oom_score_adj") << 0; }},
    {"exit", [](const std::string& code) { std::exit(std::atoi(code.c_str())); }},
};

}  // namespace

int main(int argc, char** argv) {
  alarm(60);  // a test that waits in vain fails instead of hanging
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    const auto deed = kDeeds.find(word.substr(0, equals));
    if (deed == kDeeds.end()) give_up("unknown word " + word);
    deed->second(equals == std::string::npos ? "" : word.substr(equals + 1));
  }
  return 0;
}
