// The host's journal: who writes the next group, how often a database that takes none is tried
// again, and the actions that wait until what led to them is written.
#include <fmt/core.h>

#include <chrono>
#include <condition_variable>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "base/guarded.h"
#include "catalog/sql/sqlstate.h"
#include "elastic/master/master_host.h"

namespace sluice::elastic {
namespace {

// How often decisions that nothing waits for are written, in groups: what a master's death loses is
// repeated.
constexpr double kGroupSeconds = 0.05;
// How long to wait before writing again to a database that took no group.
constexpr auto kWritePause = std::chrono::milliseconds(200);
// A locked database is alive, and gets more patience than one that does not answer.
constexpr double kLockedSeconds = 600;

}  // namespace

// Once more when the job is over: its end has to be in the journal, too.
void MasterHost::Write(const std::stop_token& done) {
  bool over = false;
  while (!over) {
    {
      MutexLock lock(mutex_);
      to_do_.wait_for(lock.native(), done, std::chrono::duration<double>(kGroupSeconds),
                      [this]() REQUIRES(mutex_) { return master_.outbox().has_actions(); });
    }
    over = done.stop_requested();
    const Status written = Guarded("writing down what a job decides", [this] { SaveAndAct(); });
    if (!written.ok()) {
      With([&](Master& master, TimePoint) { master.Abort(written); });
    }
  }
}

void MasterHost::SaveAndAct() {
  const TimePoint now = clock_.Now();
  if (!ShouldSave(now)) {
    return;
  }
  {
    const MutexLock lock(mutex_);
    for (Master::Action& action : master_.outbox().TakeActions()) {
      unsaved_actions_.push_back(std::move(action));
    }
  }
  last_save_ = now;
  if (!Save().ok()) {  // including everything that led to the actions
    return;            // another thread may be writing for long: they stay for the next call
  }
  for (const Master::Action& action : std::exchange(unsaved_actions_, {})) {
    const Status status = Guarded("acting for a job", [&] { return handler_(action); });
    With([&](Master& master, TimePoint) {
      if (!status.ok()) {
        master.Abort(status);
      }
    });
  }
}

bool MasterHost::ShouldSave(TimePoint now) const {
  const MutexLock lock(mutex_);
  return master_.outbox().has_actions() || master_.finished() ||
         SecondsBetween(last_save_, now) >= kGroupSeconds;
}

Status MasterHost::Save() {
  if (journal_ == nullptr) {
    return Status();
  }
  JournalStore& journal = *journal_;
  std::string entry;
  bool anew = false;
  RETURN_IF_ERROR(TakeEntry(&entry, &anew));
  if (entry.empty()) {
    return Status();
  }
  // While this group is being written, the next one is collected.
  Status written;
  const TimePoint begun = clock_.Now();
  for (bool told = false;; told = true) {
    written = Guarded("writing the journal", [&] { return journal.Append(term_, {entry}, anew); });
    if (!catalog::IsUnavailableForNow(written)) {
      break;
    }
    if (!told && events_.on_event) {  // Pump, which passes on events, may be waiting here
      events_.on_event(kDatabaseWaits, fmt::format("the job's journal cannot be written yet: {}",
                                                   written.message()));
    }
    if (!WaitToWriteAgain(written, begun)) {
      break;
    }
  }
  const MutexLock lock(mutex_);
  writing_since_.reset();
  if (!written.ok()) {
    FailJournal(written);
  }
  ++changes_;
  changed_.notify_all();
  return saved_;
}

// A lost connection or a held lock is no reason to end a job. True: try again.
bool MasterHost::WaitToWriteAgain(const Status& why, TimePoint begun) {
  const bool locked = catalog::IsLocked(why);
  const auto until = std::chrono::steady_clock::now() + kWritePause;
  MutexLock lock(mutex_);
  const double limit = locked ? kLockedSeconds : master_.options().journal_seconds;
  while (saved_.ok() && !(master_.finished() && !master_.result().ok())) {
    if (SecondsBetween(begun, clock_.Now()) >= limit) {
      return false;
    }
    if (changed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
      writing_since_ = clock_.Now();  // if it hangs, it hangs from then on
      return true;
    }
  }
  return false;  // the job is over: the entry is not needed
}

// The next group, when no other thread is writing. Without one there is nothing to write.
Status MasterHost::TakeEntry(std::string* entry, bool* anew) {
  MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::duration<double>(master_.options().journal_seconds);
  while (writing_since_.has_value()) {
    RETURN_IF_ERROR(saved_);
    if (changed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
      return Unavailable("the job's journal is not written");
    }
  }
  RETURN_IF_ERROR(saved_);
  Result<std::string> taken = master_.TakeJournal(anew);
  if (!taken.ok()) {
    FailJournal(taken.status());
    return saved_;
  }
  *entry = *std::move(taken);
  if (!entry->empty()) {
    writing_since_ = clock_.Now();
  }
  return Status();
}

void MasterHost::FailJournal(const Status& why) {
  saved_ = saved_.ok() ? why : saved_;
  master_.Abort(saved_);
  ++changes_;
  changed_.notify_all();
}

void MasterHost::CheckJournal(TimePoint now) {
  const double limit = master_.options().journal_seconds;
  if (saved_.ok() && writing_since_.has_value() && SecondsBetween(*writing_since_, now) >= limit) {
    FailJournal(Unavailable(
        fmt::format("the jobs database has not accepted the job's journal for {} seconds", limit)));
  }
}

// A master that cannot write must not answer; the worker asks the next one.
Status MasterHost::SaveForWorker() {
  const Status saved = Save();
  return saved.ok() ? saved : Unavailable(saved.message());
}

}  // namespace sluice::elastic
