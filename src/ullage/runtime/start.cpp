// SPDX-License-Identifier: Apache-2.0

// Runs when libullage_torch.so is loaded. In a process started by `ullage run` it finds the ledger in the environment
// and starts a session. If the budget is a card's, the session waits for the first allocation on the card. In any other
// process it does nothing until begin_budget() is called, which makes a ledger of its own. If the budget cannot be
// kept, the program must not run on, and this file ends it. Other files of the runtime end a process only by the
// functions that this file gives them (Session::Settings, CardSettings).

#include "ullage/base/exit_code.h"
#include "ullage/base/sizes.h"
#include "ullage/runtime/card_session.h"
#include "ullage/runtime/ops/vector_math.h"
#include "ullage/runtime/pool/fault_handler.h"
#include "ullage/runtime/pool/library_pages.h"
#include "ullage/runtime/pool/storage_marks.h"
#include "ullage/runtime/python/python_process.h"
#include "ullage/runtime/runtime.h"
#include "ullage/runtime/session.h"
#include "ullage/store/budget.h"
#include "ullage/store/ledger.h"
#include "ullage/store/process_memory.h"
#include "ullage/store/spill_folder.h"

#include <dlfcn.h>
#include <malloc.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

namespace ullage::runtime {
namespace {

// Writes a line to stderr, first ending the line of a progress bar if one is open there.
void warn(const std::string& line) {
  static const auto line_is_open = reinterpret_cast<bool (*)()>(dlsym(RTLD_DEFAULT, "ullage_stderr_line_is_open"));
  const bool open = line_is_open != nullptr && line_is_open();
  std::fprintf(stderr, "%sullage: %s\n", open ? "\n" : "", line.c_str());
}

// The slot of this process; null before it has one. A child made by fork claims its own.
store::LedgerSlot* own_slot = nullptr;
bool in_child = false;
bool begun_here = false;  // by begin_budget()

// Notes that this process forked or was made by fork: both sides will copy shared pages that they write to. Call it
// only if a launcher counts those copies, because nobody else would ever take the estimate back.
void expect_copies() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  own_slot->forked_at.store(
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()));
  if (in_python()) own_slot->copies_expected.store(store::Budget::kForkedInPython.count);
}

// Claims a slot for a child made by fork; null if the budget is a card's, or no slot is free. The pages that the child
// holds at first are its parent's and are counted there. `counted`: a launcher counts the pages that the child copies.
store::LedgerSlot* claim_slot_in_child(store::Ledger& ledger, bool counted) {
  if (ledger.page().card.load() != 0) return nullptr;  // the card is its parent's
  store::LedgerSlot* parent = std::exchange(own_slot, nullptr);
  own_slot = ledger.claim_slot();
  in_child = true;
  if (own_slot == nullptr) {
    if (parent != nullptr) parent->unseen_children.store(1);
    return nullptr;
  }
  if (parent != nullptr) {
    own_slot->others.store(parent->others.load());
    own_slot->generation.store(parent->generation.load());
  }
  own_slot->parent.store(static_cast<std::uint64_t>(::getppid()));
  if (counted) expect_copies();
  const Bytes resident = store::resident_now();
  for (store::Word* word : {&own_slot->rss_counted, &own_slot->rss_seen, &own_slot->rss}) word->store(resident.count);
  return own_slot;
}

// How long a request that would be refused waits for the launcher to count the tree. The launcher expects copies of a
// new child for up to two seconds, and the count waits for that.
constexpr std::chrono::milliseconds kWorthWaiting{3000};

// How long a process that takes memory outside its pool waits for the pools of others. The watches look every 8 ms. A
// block that may be refused waits for as long as pools need to write out what they can. A smaller one of a process with
// a watch does not wait: such a process may take many, and its own pool has given way.
constexpr store::Patience kPatience{.looks = std::chrono::milliseconds(200), .all = std::chrono::milliseconds(2200)};
constexpr store::Patience kBeforeRefusal{.looks = std::chrono::seconds(10), .all = std::chrono::seconds(10)};

store::Patience patience_for(Bytes bytes, bool may_fail) {
  if (may_fail) return kBeforeRefusal;
  return in_child || bytes >= store::kTakenAnew ? kPatience : store::Patience{};
}

// The processes that write into this ledger, and the others that its launcher counts.
class LedgerTree final : public store::Tree {
 public:
  // `counted`: there is a launcher that counts.
  LedgerTree(store::LedgerPage& page, bool counted) : page_(page), counted_(counted) {}

  // Called whenever the pool is about to grow. A child made by fork has no watch, so it notes its own growth here.
  store::Others others() override {
    if (in_child && own_slot != nullptr) own_slot->rss.store(store::resident_now().count);
    return store::others_of(page_, own_slot);
  }
  bool share_pressure(bool is_under_pressure) override {
    if (is_under_pressure) page_.pressure.store(1);
    if (is_under_pressure && own_slot != nullptr) own_slot->followed.store(1);
    return page_.pressure.load() != 0;
  }
  bool others_are_followed() override {
    return std::ranges::all_of(page_.slots, [](const store::LedgerSlot& slot) {
      const bool has_pool = &slot != own_slot && slot.looks_begun.load() > 0 && slot.pool_resident.load() > 0;
      return !has_pool || slot.followed.load() != 0 || !store::is_alive(slot);
    });
  }
  bool is_counted() override { return counted_; }
  Bytes inherited() override { return in_child || own_slot == nullptr ? Bytes{} : store::inherited_from(*own_slot); }
  Bytes largest_program() override { return Bytes{page_.largest_program.load()}; }
  bool others_grow() override { return page_.programs_grow.load() > 0 || store::others_have_a_turn(page_, own_slot); }
  std::uint64_t processes() override { return store::processes_beside(page_, own_slot); }
  bool count(Bytes lacking) override {
    if (!counted_ || others().held == Bytes{}) return false;
    store::LedgerSlot* slot = own_slot;
    if (slot != nullptr) slot->lacking.fetch_add(lacking.count);
    const bool counted = store::await_count(page_, slot, kWorthWaiting);
    if (slot != nullptr) slot->lacking.fetch_sub(lacking.count);
    // A process that waits for this one's turn may hold memory meanwhile.
    if (slot != nullptr) store::end_turn(page_, *slot);
    return counted;
  }
  void lease(Bytes bytes) override {
    if (own_slot != nullptr) own_slot->leased.fetch_add(bytes.count);
  }
  void end_lease(Bytes leased, Bytes taken) override {
    if (own_slot == nullptr) return;
    own_slot->rss.fetch_add(taken.count);  // until the watch measures again
    own_slot->leased.fetch_sub(leased.count);
  }
  bool make_way(Bytes bytes, bool may_fail) override {
    if (!counted_ || own_slot == nullptr) return true;
    may_fail &= bytes >= store::kTakenAnew;
    const bool in_time = store::make_way(page_, *own_slot, &store::resident_now, bytes, store::Budget::kMargin,
                                         patience_for(bytes, may_fail));
    const auto passes = [&] { return store::passes_budget(page_, *own_slot, store::resident_now() + bytes); };
    if (!may_fail || !in_time || !passes()) return true;
    // The count waits for copies that are expected. What others gave back is in no figure before it.
    if (!store::await_count(page_, own_slot, kWorthWaiting) || !passes()) return true;
    return Bytes{::mallinfo2().fordblks} >= bytes;  // the heap may have as much among what was freed
  }
  void refused(Bytes bytes) override {
    if (own_slot == nullptr) return;
    store::end_turn(page_, *own_slot);
    own_slot->coming_to.store(0);
    const Bytes held = store::resident_now(), held_by_others = store::held_for_certain(page_, *own_slot);
    const Bytes least = held_by_others + held + bytes + store::Budget::kMargin + store::Budget::kLeastAllowance;
    own_slot->last_request.store(bytes.count);
    own_slot->last_op.set("malloc");
    own_slot->message.set(fmt::format(
        "out of memory within the budget: a block of {} outside the pool; this process holds {} and the others {} of "
        "the budget of {}, and no pool has more to move out now; a budget of {} would serve this request",
        to_string(bytes), to_string(held), to_string(held_by_others), to_string(Bytes{page_.budget.load()}),
        to_string(least)));
    store::raise_to(own_slot->refused_least, least.count);
    own_slot->refused.fetch_add(1);
  }
  void forget_announced() override { store::forget_announced(page_, own_slot); }
  void forking(bool followed) override {
    if (own_slot == nullptr) return;
    const std::uint64_t unseen = followed ? 0 : 1;
    if (own_slot->unseen_children.exchange(unseen) == unseen && own_slot->left_to_children.load() == 0) return;
    own_slot->generation.fetch_add(1);
    own_slot->inherited.store(0);
    own_slot->left_to_children.store(0);
    own_slot->left_counted.store(0);
  }
  void forked() override {
    if (counted_ && own_slot != nullptr) expect_copies();
  }
  void diverged(Bytes bytes) override {
    if (counted_ && own_slot != nullptr) own_slot->diverged.fetch_add(bytes.count);
  }
  void copying(Bytes bytes) override {
    if (own_slot != nullptr) own_slot->copying.fetch_add(bytes.count);
  }
  void copied(Bytes bytes) override {
    if (own_slot != nullptr) own_slot->copying.fetch_sub(bytes.count);
  }
  void left_to_children(Bytes bytes) override {
    if (counted_ && !in_child && own_slot != nullptr) own_slot->left_to_children.fetch_add(bytes.count);
  }
  void used_inherited(Bytes bytes) override {
    if (own_slot != nullptr) own_slot->inherited_used.fetch_add(bytes.count);
  }

 private:
  store::LedgerPage& page_;
  const bool counted_;
};

// Ends the process if the session cannot start. The launcher prints `why` from the slot; without a slot, this does.
[[noreturn]] void give_up(store::LedgerSlot* slot, const std::string& why) {
  if (slot != nullptr) {
    slot->message.set(why);
    slot->infeasible.store(1);
  } else {
    warn(why);
  }
  _exit(to_int(ExitCode::Infeasible));
}

// Ends the process when a thread stands at an instruction whose bytes cannot be brought back: it cannot run on.
[[noreturn]] void end_now(store::LedgerSlot* slot, const std::string& why, bool infeasible) {
  warn(why);
  slot->message.set(why);
  slot->refused.fetch_add(1);
  if (infeasible) slot->infeasible.store(1);
  _exit(to_int(infeasible ? ExitCode::Infeasible : ExitCode::Failed));
}

// Ends the process if the budget is a card's and await_card() failed. The exit code is Failed, as no bytes are lacking.
[[noreturn]] void no_card(const std::string& why) {
  warn(why);
  if (own_slot != nullptr) own_slot->message.set(why);
  _exit(to_int(ExitCode::Failed));
}

// Has the process never had a tensor? torchrun's own process imports torch and then only waits for its ranks.
bool has_had_no_tensor(const store::LedgerPage& page, std::int32_t pid) {
  for (const store::LedgerSlot& slot : page.slots) {
    if (slot.pid.load() == pid) return slot.pool_live_peak.load() == 0;
  }
  return false;
}

// Is this process the one that is recorded? The first process of the tree that asks is. Whoever asks later takes over
// if the present one has had no tensor yet.
bool is_recorded(store::LedgerPage& page) {
  std::int32_t recorder = page.recorder.load();
  while (recorder != getpid() && (recorder == 0 || has_had_no_tensor(page, recorder))) {
    if (page.recorder.compare_exchange_weak(recorder, getpid())) return true;
  }
  return recorder == getpid();
}

// ULLAGE_STRESS, for tests: "ops", "thread" or "strict" (session.h).
Session::Stress stress_from_environment() {
  const char* text = std::getenv("ULLAGE_STRESS");
  const std::string_view mode = text != nullptr ? text : "";
  if (mode == "ops") return Session::Stress::Ops;
  if (mode == "thread") return Session::Stress::Thread;
  return mode == "strict" ? Session::Stress::Strict : Session::Stress::None;
}

// ULLAGE_PLANNING=wait, for tests and dry runs: the program waits for its plan, so that the plan is followed from a
// known step on.
bool waits_for_plan() {
  const char* text = std::getenv("ULLAGE_PLANNING");
  return text != nullptr && std::string_view(text) == "wait";
}

// A session's settings, as the ledger has them. `launched`: the process has a launcher, which counts the tree.
Session::Settings settings_of(store::Ledger* ledger, store::LedgerSlot* slot, bool launched) {
  Session::Settings settings;
  settings.budget = Bytes{ledger->page().budget.load()};
  settings.slot = slot;
  settings.slot_of_child = [ledger, launched] { return claim_slot_in_child(*ledger, launched); };
  // A card needs no tree: what other processes hold of it is measured with the card (cuda/card_use.h).
  if (ledger->page().card.load() == 0) settings.tree = new LedgerTree(ledger->page(), launched);
  settings.spill = {ledger->page().spill_folder.get(), Bytes{ledger->page().spill_limit.load()}};
  if (!ledger->page().record_file.get().empty() && is_recorded(ledger->page())) {
    settings.record_file = ledger->page().record_file.get();
    settings.is_recorded = [&page = ledger->page()] { return is_recorded(page); };
    settings.stop_after = ledger->page().stop_after.load();
    settings.end_process = [] { _exit(to_int(ExitCode::Done)); };
    settings.rehearsal = ledger->page().rehearsal.get();
  }
  settings.plan_file = ledger->page().plan_file.get();
  settings.waits_for_plan = waits_for_plan();
  settings.plans = ledger->page().no_plan.load() == 0;
  settings.counts_half = ledger->page().counts_half.load() != 0;
  settings.casts_if_needed = ledger->page().casts_if_needed.load() != 0;
  settings.stress = stress_from_environment();
  settings.warn = &warn;
  if (ledger->page().quiet.load() == 0) settings.say = &warn;
  settings.give_up = [slot](const std::string& why, bool infeasible) { end_now(slot, why, infeasible); };
  return settings;
}

// The ledger and its slot live as long as the process, like the session.
struct Account {
  store::Ledger* ledger;
  store::LedgerSlot* slot;
};
Result<Account> open_account(store::Ledger from) {
  auto* ledger = new store::Ledger(std::move(from));
  own_slot = ledger->claim_slot();
  if (own_slot == nullptr) {
    return Error{Error::Kind::System,
                 "more than " + std::to_string(store::LedgerPage::kSlots) +
                     " living processes share this budget, and the ledger has no slot for another",
                 ""};
  }
  return Account{ledger, own_slot};
}

Result<Session*> start_session(store::Ledger from, bool launched) {
  ULLAGE_TRY_VALUE(const Account account, open_account(std::move(from)));
  // These two run before the bytes outside the pool are counted for the first time.
  trim_libraries();
  prepare_vector_math();
  Session::Settings settings = settings_of(account.ledger, account.slot, launched);
  if (launched) settings.held_once = store::resident_peak();  // the peak while the process was loaded
  return Session::start(std::move(settings));
}

Address address_of(void* at) { return {reinterpret_cast<std::uint64_t>(at)}; }

void note_mapped(void* at, std::size_t size, bool writable) {
  Session::current()->file_mapped(address_of(at), Bytes{size}, writable);
}

bool note_unmapping(void* at, std::size_t size) {
  return Session::current()->unmaps_a_file(address_of(at), Bytes{size});
}

void note_unmapped(void* at, std::size_t size) { Session::current()->file_unmapped(address_of(at), Bytes{size}); }

// If libullage_preload.so is in this process, has the heap's large requests, the mapping of files, and programs that
// start announced, and failed system calls healed.
void follow_the_program() {
  using Listener = bool (*)(std::size_t, bool);
  const auto announce = reinterpret_cast<void (*)(Listener)>(dlsym(RTLD_DEFAULT, "ullage_announce_large_requests"));
  if (announce != nullptr)
    announce([](std::size_t bytes, bool may_fail) { return Session::current()->make_way(Bytes{bytes}, may_fail); });
  const auto programs = reinterpret_cast<void (*)(void (*)())>(dlsym(RTLD_DEFAULT, "ullage_announce_programs"));
  if (programs != nullptr) programs([] { Session::current()->make_way_for_a_program(); });
  using Mapped = void (*)(void*, std::size_t, bool);
  using Unmapping = bool (*)(void*, std::size_t);
  using Unmapped = void (*)(void*, std::size_t);
  const auto announce_files =
      reinterpret_cast<void (*)(Mapped, Unmapping, Unmapped)>(dlsym(RTLD_DEFAULT, "ullage_announce_file_mappings"));
  if (announce_files != nullptr) announce_files(&note_mapped, &note_unmapping, &note_unmapped);
  using Hold = bool (*)(const iovec*, std::size_t, bool);
  const auto heal = reinterpret_cast<void (*)(Hold, void (*)())>(dlsym(RTLD_DEFAULT, "ullage_heal_system_calls"));
  if (heal != nullptr) heal(&hold_buffers, &let_buffers_go);
}

// On a card: has storages compared without their bytes.
void compare_storages() {
  using Compare = bool (*)(const void*, const void*);
  const auto set = reinterpret_cast<void (*)(Compare)>(dlsym(RTLD_DEFAULT, "ullage_compare_storages"));
  if (set != nullptr) set(&is_shared_alias);
}

// The path of library `name` beside this one, unless the environment `variable` of the tests gives another path.
std::string library(const char* variable, const char* name) {
  if (const char* path = std::getenv(variable)) return path;
  Dl_info own = {};
  if (dladdr(reinterpret_cast<const void*>(&library), &own) == 0 || own.dli_fname == nullptr) return name;
  const std::string_view path = own.dli_fname;
  return std::string(path.substr(0, path.rfind('/') + 1)) + name;
}

Status start_on_card(store::Ledger from) {
  ULLAGE_TRY_VALUE(const Account account, open_account(std::move(from)));
  store::LedgerPage& page = account.ledger->page();
  store::LedgerSlot* slot = account.slot;
  CardSettings settings;
  settings.card = static_cast<int>(page.card.load() - 1);
  settings.host_memory = Bytes{page.host_memory.load()};
  if (const char* least = std::getenv("ULLAGE_CARD_LEAST")) settings.least = parse_bytes(least).value();  // for tests
  settings.session = settings_of(account.ledger, slot, /*launched=*/true);
  settings.begun = [&page](Bytes budget) { page.budget.store(budget.count); };
  settings.failed = [slot](const Error& error) { give_up(slot, error.text()); };
  settings.allocator_library = library("ULLAGE_CARD_ALLOCATOR", "libullage_cuda.so");
  const char* driver = std::getenv("ULLAGE_CARD_DRIVER");
  settings.driver_library = driver != nullptr ? driver : "libcuda.so.1";
  compare_storages();
  return await_card(std::move(settings));
}

__attribute__((constructor)) void start_from_environment() {
  Result<store::Ledger> attached = store::Ledger::attach_from_environment();
  if (!attached) {
    if (attached.error().kind != Error::Kind::NotFound) give_up(nullptr, attached.error().text());
    return;
  }
  if (attached->page().card.load() != 0) {
    const Status awaited = start_on_card(std::move(*attached));
    if (!awaited) no_card(awaited.error().text());
    return;
  }
  const Result<Session*> session = start_session(std::move(*attached), /*launched=*/true);
  if (!session) give_up(own_slot, session.error().text());
  follow_the_program();
}

}  // namespace

Status begin_budget(Bytes memory, const std::string& spill, const std::string& record_file) {
  if (memory == Bytes{})
    return Error{Error::Kind::BadArgument, "0 bytes were stated; give a size above 0, such as 4GiB", "--memory"};
  if (Session* session = Session::current()) {
    if (begun_here) return session->restate(memory);
    return Error{
        Error::Kind::BadArgument,
        fmt::format("the process was started by 'ullage run'; its budget of {} stays in force, not the {} asked for",
                    to_string(session->budget()), to_string(memory)),
        ""};
  }
  store::LedgerSettings settings{.budget = memory, .spill_folder = {}, .spill_limit = {}};
  if (spill != "none") {
    const Result<store::SpillPlace> place =
        spill.empty() ? store::default_spill_place() : store::find_spill_place(spill);
    if (!place) return place.error();
    settings.spill_folder = place->folder, settings.spill_limit = place->most;
  }
  settings.record_file = record_file;
  ULLAGE_TRY_VALUE(store::Ledger ledger, store::Ledger::create(settings));
  ULLAGE_TRY(start_session(std::move(ledger), /*launched=*/false));
  begun_here = true;
  return success();
}

void lift_budget() {
  if (begun_here) (void)Session::current()->restate(Bytes{});
}

}  // namespace ullage::runtime
