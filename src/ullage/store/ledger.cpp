// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/ledger.h"

#include "ullage/store/process_memory.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace ullage::store {
namespace {

// The ledger's descriptor is this or higher, because shells and scripts take the low ones for themselves (exec 3>file).
constexpr int kLeastDescriptor = 100;

// await_count() waits for looks for at most this part of its time.
constexpr int kLooksShare = 3;

// For how long an announcement of make_way() counts. The launcher sees within 10 ms what was touched, but a busy
// machine may let the process wait before it touches anything.
constexpr std::chrono::milliseconds kComing{250};

// For how long a process keeps its turn after it has filled its last block.
constexpr std::chrono::milliseconds kTurn{500};

// How many bytes of a new block a process touches in a millisecond at least (256 MiB a second), and for how long it is
// expected to touch one at the most, because it may not touch all of it.
constexpr std::uint64_t kTouchedInMs = std::uint64_t{256} * 1024;
constexpr std::chrono::milliseconds kMostTouching{1000};

// A watch looks at least this often, unless its look takes longer.
constexpr std::chrono::milliseconds kBetweenLooks{200};

std::chrono::milliseconds now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch());
}

constexpr std::size_t kMostPath = sizeof(LedgerPage::spill_folder.text);
constexpr std::size_t kMostSizes = sizeof(LedgerPage::rehearsal.text);
static_assert(sizeof(LedgerPage::record_file.text) == kMostPath && sizeof(LedgerPage::plan_file.text) == kMostPath);

Error system_error(const std::string& what) {
  return {Error::Kind::System, "ledger: " + what + ": " + std::strerror(errno), ""};
}

LedgerPage* map_page(int fd) {
  void* place = ::mmap(nullptr, sizeof(LedgerPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return place == MAP_FAILED ? nullptr : static_cast<LedgerPage*>(place);
}

Status check_text(const std::string& what, const std::string& text, std::size_t most) {
  if (text.size() <= most) return success();
  return Error{Error::Kind::BadArgument,
               what + " has " + std::to_string(text.size()) + " bytes, at most " + std::to_string(most) +
                   " are passed on; shorten it",
               text};
}

int moved_up(int fd) {
  const int high = ::fcntl(fd, F_DUPFD, kLeastDescriptor);
  if (high < 0) return fd;  // the limit on open files is lower: the low number serves too
  ::close(fd);
  return high;
}

// The first words of the page. They are read without mapping it, because another build may lay it out otherwise.
struct Head {
  std::uint64_t magic = 0;
  std::uint32_t layout = 0;
  std::uint32_t size = 0;
};
static_assert(offsetof(LedgerPage, layout) == offsetof(Head, layout) &&
              offsetof(LedgerPage, size) == offsetof(Head, size));

Status check_page(int fd, const std::string& where) {
  Head head;
  struct stat info = {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || ::pread(fd, &head, sizeof head, 0) != sizeof head ||
      head.magic != LedgerPage::kMagic) {
    return Error{Error::Kind::BadFile, "descriptor " + std::to_string(fd) + " is not a ledger of Ullage", where};
  }
  if (head.layout != LedgerPage::kLayout || head.size != sizeof(LedgerPage) ||
      static_cast<std::uint64_t>(info.st_size) < sizeof(LedgerPage)) {
    return Error{Error::Kind::BadFile,
                 "the ledger has layout " + std::to_string(head.layout) + " and " + std::to_string(head.size) +
                     " bytes, this runtime knows layout " + std::to_string(LedgerPage::kLayout) + " with " +
                     std::to_string(sizeof(LedgerPage)) + " bytes; ullage and its runtime are of different builds",
                 where};
  }
  return success();
}

// "FD:PID" or "FD".
struct Name {
  int fd = -1;
  int launcher = 0;
};

std::optional<Name> parse_name(std::string_view text) {
  Name name;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, name.fd);
  if (error != std::errc{} || name.fd < 0) return std::nullopt;
  if (rest == end) return name;
  if (*rest != ':') return std::nullopt;
  auto [last, second_error] = std::from_chars(rest + 1, end, name.launcher);
  if (second_error != std::errc{} || last != end || name.launcher <= 0) return std::nullopt;
  return name;
}

bool is_gone(const LedgerSlot& slot) {
  const std::int32_t pid = slot.pid.load();
  if (pid <= 0) return false;  // free, or being wiped by its next owner
  return slot.ended.load() != 0 || (::kill(pid, 0) != 0 && errno == ESRCH);
}

// Zeroes everything after the pid, including fields that later layouts add.
void wipe(LedgerSlot& slot) {
  static_assert(std::is_standard_layout_v<LedgerSlot> && offsetof(LedgerSlot, pid) == 0);
  char* start = reinterpret_cast<char*>(&slot) + sizeof slot.pid;
  std::memset(start, 0, sizeof slot - sizeof slot.pid);
}

}  // namespace

Result<Ledger> Ledger::create(const LedgerSettings& settings) {
  const bool spills = !settings.spill_folder.empty() && settings.spill_limit > Bytes{};
  if (spills) {
    ULLAGE_TRY(check_text("the path of the spill folder", settings.spill_folder, kMostPath));
  }
  ULLAGE_TRY(check_text("the path of the trace", settings.record_file, kMostPath));
  ULLAGE_TRY(check_text("the path of the plan", settings.plan_file, kMostPath));
  ULLAGE_TRY(check_text("the sizes to try", settings.rehearsal, kMostSizes));
  // Not closed on exec, because the program inherits it. Its size is sealed: if a process of the tree shortened it, the
  // launcher would get SIGBUS when it reads past the end.
  int fd = ::memfd_create("ullage-ledger", MFD_ALLOW_SEALING);
  if (fd < 0) return system_error("memfd_create");
  fd = moved_up(fd);
  if (::ftruncate(fd, sizeof(LedgerPage)) != 0 || ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    const Error error = system_error("cannot size the page to " + std::to_string(sizeof(LedgerPage)) + " bytes");
    ::close(fd);
    return error;
  }
  LedgerPage* place = map_page(fd);
  if (place == nullptr) {
    const Error error = system_error("mmap");
    ::close(fd);
    return error;
  }
  auto* page = new (place) LedgerPage;
  page->size = sizeof(LedgerPage);
  page->budget.store(settings.budget.count);
  if (settings.card) page->card.store(std::uint64_t{*settings.card} + 1);
  page->host_memory.store(settings.host_memory.count);
  if (spills) {
    page->spill_folder.set(settings.spill_folder);
    page->spill_limit.store(settings.spill_limit.count);
  }
  page->record_file.set(settings.record_file);
  page->plan_file.set(settings.plan_file);
  page->no_plan.store(settings.no_plan ? 1 : 0);
  page->quiet.store(settings.quiet ? 1 : 0);
  page->counts_half.store(settings.counts_half ? 1 : 0);
  page->casts_if_needed.store(settings.casts_if_needed ? 1 : 0);
  page->stop_after.store(settings.stop_after);
  page->rehearsal.set(settings.rehearsal);
  return Ledger(page, fd);
}

Result<Ledger> Ledger::attach(int fd, const std::string& where) {
  ULLAGE_TRY(check_page(fd, where));
  LedgerPage* page = map_page(fd);
  if (page == nullptr) return system_error("mmap of descriptor " + std::to_string(fd));
  return Ledger(page, fd);
}

Result<Ledger> Ledger::attach_from_environment() {
  const char* text = std::getenv(kVariable);
  if (text == nullptr || *text == '\0')
    return Error{Error::Kind::NotFound, "no ledger: not started by 'ullage run'", kVariable};
  const std::optional<Name> name = parse_name(text);
  if (!name) {
    return Error{Error::Kind::BadArgument,
                 "'" + std::string(text) + "' names no descriptor; only 'ullage run' sets this variable, so unset it",
                 kVariable};
  }
  Result<Ledger> inherited = attach(name->fd, kVariable);
  if (inherited || name->launcher == 0) return inherited;
  // Some parents close all descriptors before they start a child (Python's subprocess does).
  const std::string path = "/proc/" + std::to_string(name->launcher) + "/fd/" + std::to_string(name->fd);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return inherited;
  Result<Ledger> reopened = attach(fd, kVariable);
  if (!reopened) {
    ::close(fd);
    return inherited;
  }
  return reopened;
}

std::string Ledger::environment_value(std::int32_t launcher) const {
  return std::to_string(fd_) + ":" + std::to_string(launcher);
}

Ledger::Ledger(Ledger&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)), fd_(std::exchange(other.fd_, -1)) {}

Ledger& Ledger::operator=(Ledger&& other) noexcept {
  std::swap(page_, other.page_);
  std::swap(fd_, other.fd_);
  return *this;
}

Ledger::~Ledger() {
  if (page_ != nullptr) ::munmap(page_, sizeof(LedgerPage));
}

LedgerSlot* Ledger::claim_slot() {
  const std::int32_t self = ::getpid();
  for (LedgerSlot& slot : page_->slots) {
    if (slot.pid.load() != self) continue;
    slot.ended.store(0);
    slot.forked_at.store(0);
    slot.parent.store(0);
    for (Word* word : {&slot.left_to_children, &slot.left_counted, &slot.generation, &slot.inherited,
                       &slot.inherited_used, &slot.unseen_children}) {
      word->store(0);
    }
    slot.copies_expected.store(0);
    slot.copying.store(0);
    slot.coming_to.store(0);
    slot.lacking.store(0);
    slot.movable.store(0);
    slot.looks_begun.store(0);
    slot.looks_ended.store(0);
    slot.followed.store(0);
    return &slot;
  }
  for (LedgerSlot& slot : page_->slots) {
    std::int32_t free = 0;
    if (slot.pid.compare_exchange_strong(free, self)) return &slot;
  }
  // The lowest peak goes, so that the report keeps the highest.
  for (;;) {
    LedgerSlot* least = nullptr;
    for (LedgerSlot& slot : page_->slots) {
      if (is_gone(slot) && (least == nullptr || slot.rss_peak.load() < least->rss_peak.load())) least = &slot;
    }
    if (least == nullptr) return nullptr;
    std::int32_t owner = least->pid.load();
    if (owner > 0 && is_gone(*least) && least->pid.compare_exchange_strong(owner, -self)) {
      wipe(*least);
      least->pid.store(self);
      return least;
    }
  }
}

bool is_alive(const LedgerSlot& slot) { return slot.pid.load() > 0 && !is_gone(slot); }

namespace {

// What the process announced by make_way() and has not touched yet, as far as is known.
Bytes coming_of(const LedgerSlot& slot) {
  const Bytes to{slot.coming_to.load()};
  if (to == Bytes{} || std::chrono::milliseconds(slot.coming_until.load()) <= now_ms()) return {};
  return saturating_sub(to, Bytes{std::max(slot.rss.load(), slot.rss_seen.load())});
}

// LedgerSlot::lacking of the other processes, as others_of() counts it.
Bytes lacked_by_others(const LedgerPage& page, const LedgerSlot* own) {
  Bytes sum{};
  for (const LedgerSlot& slot : page.slots) {
    if (&slot != own) {
      if (is_alive(slot)) sum += Bytes{slot.lacking.load()};
    } else if (slot.lacking.load() > 0) {
      break;
    }
  }
  return sum;
}

// Whether the watches of the processes have looked since this object was made, from begin to end. `own`: the slot whose
// watch does not matter; may be null.
class Looks final {
 public:
  Looks(const LedgerPage& page, const LedgerSlot* own) : page_(page), own_(own) {
    for (std::size_t i = 0; i < before_.size(); ++i)
      before_[i] = {page.slots[i].pid.load(), page.slots[i].looks_begun.load()};
  }

  // Of n + 1 looks that have ended, one began after n had begun. If fewer have begun than before, the process runs
  // another program.
  bool has_looked(const LedgerSlot& slot) const {
    const auto& [pid, begun] = before_[static_cast<std::size_t>(&slot - page_.slots.data())];
    if (&slot == own_ || begun == 0 || slot.pid.load() != pid) return true;
    return slot.looks_ended.load() > begun || slot.looks_begun.load() < begun;
  }
  // `without_idle`: a watch that is not in the midst of a look does not matter. If it has stood still for a while, its
  // process has ended or runs another program.
  bool have_looked(bool without_idle = false) const {
    return std::ranges::all_of(page_.slots, [&](const LedgerSlot& slot) {
      const bool is_idle = slot.looks_begun.load() == slot.looks_ended.load();
      return !is_alive(slot) || has_looked(slot) || (without_idle && is_idle);
    });
  }

 private:
  struct Before {
    std::int32_t pid = 0;
    std::uint64_t begun = 0;
  };
  const LedgerPage& page_;
  const LedgerSlot* own_;
  std::array<Before, LedgerPage::kSlots> before_{};
};

// Returns whether `done` came true before `until`.
template <typename Done>
bool await(std::chrono::steady_clock::time_point until, const Done& done) {
  while (!done() && std::chrono::steady_clock::now() < until) ::usleep(1000);
  return done();
}

}  // namespace

Others others_of(const LedgerPage& page, const LedgerSlot* own) {
  const auto grown = [](const Word& now, const Word& counted) {
    return saturating_sub(Bytes{now.load()}, Bytes{counted.load()});
  };
  Others sum;
  sum.expected = lacked_by_others(page, own) + Bytes{page.room_for_programs.load()};
  if (own != nullptr) {
    // The launcher may write both meanwhile. Then the larger guess stands.
    const Bytes before{own->others_guessed.load()};
    sum.held = Bytes{own->others.load()};
    sum.guessed = std::min(std::max(before, Bytes{own->others_guessed.load()}), sum.held);
  }
  for (const LedgerSlot& slot : page.slots) {
    const bool is_own = own != nullptr && &slot == own;
    if (!is_own && !is_alive(slot)) continue;
    if (!is_own) {
      const Bytes announced = Bytes{slot.leased.load()} + coming_of(slot);
      sum.held += grown(slot.rss, slot.rss_counted) + announced;
      sum.guessed += announced;
      sum.movable += Bytes{slot.movable.load()};
    }
    // Copies that a process makes of shared pages do not change its resident size, so they are added here.
    sum.expected += Bytes{slot.copies_expected.load()};
    sum.held += grown(slot.diverged, slot.diverged_counted);
  }
  sum.held += sum.expected;
  return sum;
}

// The launcher writes `inherited` first. So in a race this is too low or right.
Bytes inherited_from(const LedgerSlot& own) {
  if (own.unseen_children.load() != 0) return {};
  const Bytes since = saturating_sub(Bytes{own.left_to_children.load()}, Bytes{own.left_counted.load()});
  return since + Bytes{own.inherited.load()};
}

std::uint64_t processes_beside(const LedgerPage& page, const LedgerSlot* own) {
  const auto counts = [own](const LedgerSlot& slot) { return &slot != own && is_alive(slot); };
  return static_cast<std::uint64_t>(std::ranges::count_if(page.slots, counts));
}

namespace {

// LedgerPage::turn is the time at which the turn ends, in ms of the steady clock, times kSlots, plus the slot's number.
std::uint64_t number_of(const LedgerPage& page, const LedgerSlot& slot) {
  return static_cast<std::uint64_t>(&slot - page.slots.data());
}

bool is_anothers(std::uint64_t turn, const LedgerPage& page, const LedgerSlot* own) {
  const bool is_own = own != nullptr && turn % LedgerPage::kSlots == number_of(page, *own);
  return !is_own && std::chrono::milliseconds(turn / LedgerPage::kSlots) > now_ms();
}

// How long a process needs to touch a block at the most.
std::chrono::milliseconds touched_within(Bytes bytes) {
  if (bytes < kTakenAnew) return std::chrono::milliseconds(0);
  return std::min(std::chrono::milliseconds(bytes.count / kTouchedInMs), kMostTouching);
}

// Announces what a process will hold once it has touched a block. Of several threads' announcements the one that
// reaches highest stands.
class Announcement final {
 public:
  explicit Announcement(LedgerSlot& own) : own_(own) {}
  // In place of what this object announced before.
  void make(Bytes to, std::chrono::milliseconds lasts) {
    withdraw();
    if (Bytes{own_.coming_to.load()} > to && coming_of(own_) > Bytes{}) return;
    own_.coming_to.store(0);  // what was announced before does not last longer
    own_.coming_until.store(static_cast<std::uint64_t>((now_ms() + lasts).count()));
    own_.coming_to.store(to.count);
    made_ = to.count;
  }
  void withdraw() {
    std::uint64_t made = std::exchange(made_, 0);
    if (made != 0) own_.coming_to.compare_exchange_strong(made, 0);
  }

 private:
  LedgerSlot& own_;
  std::uint64_t made_ = 0;
};

}  // namespace

bool make_way(LedgerPage& page, LedgerSlot& own, const std::function<Bytes()>& held, Bytes bytes, Bytes margin,
              Patience most) {
  const Bytes budget{page.budget.load()};
  if (budget == Bytes{}) return true;
  const auto until = std::chrono::steady_clock::now() + most.all;
  const auto room_for = [&](Bytes to) { return others_of(page, &own).held + to + margin <= budget; };
  const auto has_room = [&] { return room_for(held() + bytes); };
  Announcement announcement(own);
  // Returns false if a look took longer.
  const auto have_looked = [&] {
    const Looks looks(page, nullptr);
    const auto now = std::chrono::steady_clock::now();
    return await(now + std::min(most.looks, kBetweenLooks), [&] { return has_room() || looks.have_looked(); }) ||
           await(now + most.looks, [&] { return has_room() || looks.have_looked(/*without_idle=*/true); });
  };
  announcement.make(held() + bytes, most.all + kComing);
  bool in_time = has_room() || have_looked();
  const std::chrono::milliseconds touching = touched_within(bytes);
  bool has_withdrawn = false;
  const auto goes_on = [&] {
    std::uint64_t turn = page.turn.load();
    const Bytes to = held() + bytes;
    const bool room = room_for(to);
    if (room && room_for(to + bytes)) return true;  // another one has room too, so this is nobody's turn
    if (room || !is_anothers(turn, page, &own)) {
      announcement.make(to, most.all + kComing);  // before the turn is taken, so that the next one sees it
      const auto end = static_cast<std::uint64_t>((now_ms() + touching + kTurn).count());
      if (page.turn.compare_exchange_strong(turn, end * LedgerPage::kSlots + number_of(page, own))) return true;
    }
    announcement.withdraw();  // who has the turn needs the room
    has_withdrawn = true;
    return false;
  };
  if (bytes >= kTakenAnew) await(until, goes_on);
  if (has_withdrawn && !has_room()) {
    announcement.make(held() + bytes, most.looks + kComing);
    in_time = have_looked();
  }
  announcement.make(held() + bytes, touching + kComing);
  return in_time;
}

Bytes held_for_certain(const LedgerPage& page, const LedgerSlot& own) {
  const Others others = others_of(page, &own);
  Bytes uncertain = others.expected + others.guessed;
  for (const LedgerSlot& slot : page.slots) uncertain += Bytes{is_alive(slot) ? slot.copying.load() : 0};
  return saturating_sub(others.held, uncertain);
}

bool passes_budget(const LedgerPage& page, const LedgerSlot& own, Bytes held) {
  const Bytes budget{page.budget.load()};
  return budget > Bytes{} && held_for_certain(page, own) + held > budget;
}

bool others_have_a_turn(const LedgerPage& page, const LedgerSlot* own) {
  return is_anothers(page.turn.load(), page, own);
}

void end_turn(LedgerPage& page, const LedgerSlot& own) {
  std::uint64_t turn = page.turn.load();
  if (turn % LedgerPage::kSlots == number_of(page, own)) page.turn.compare_exchange_strong(turn, 0);
}

void forget_announced(LedgerPage& page, const LedgerSlot* own) {
  for (LedgerSlot& slot : page.slots) {
    if (&slot != own && is_alive(slot)) slot.coming_to.store(0);
  }
}

bool await_count(LedgerPage& page, const LedgerSlot* own, std::chrono::milliseconds most) {
  const auto now = std::chrono::steady_clock::now();
  const auto until = now + most, looks_until = now + most / kLooksShare;
  const Looks looks(page, own);
  const auto settled = [&](const LedgerSlot& slot) {
    if (!is_alive(slot)) return true;
    if (slot.copies_expected.load() > 0) return false;
    return looks.has_looked(slot) || !holds_memory(slot.pid.load()) || std::chrono::steady_clock::now() >= looks_until;
  };
  await(until, [&] { return page.room_for_programs.load() == 0 && std::ranges::all_of(page.slots, settled); });
  const std::uint64_t mine = page.counts_asked.fetch_add(1) + 1;
  return await(until, [&] { return page.counts_made.load() >= mine; });
}

}  // namespace ullage::store
