#include <fmt/core.h>

#include <chrono>

#include "base/guarded.h"
#include "catalog/sql/sqlstate.h"
#include "elastic/master/master_host.h"

// When what a master has decided is written down.
namespace sluice::elastic {
namespace {

// Decisions that nobody waits for are written in groups, so often: what a master's death leaves out
// is done again.
constexpr double kGroupSeconds = 0.05;
// A database that took no group is asked again after so long.
constexpr auto kWritePause = std::chrono::milliseconds(200);
// One that somebody has locked is there, and gets more patience than one that does not answer.
constexpr double kLockedSeconds = 600;

}  // namespace

Status MasterHost::Save() {
  if (journal_ == nullptr) {
    return Status();
  }
  std::string entry;
  bool anew = false;
  RETURN_IF_ERROR(TakeEntry(&entry, &anew));
  if (entry.empty()) {
    return Status();
  }
  // While this group is being written, the next one gathers.
  Status written;
  const TimePoint begun = clock_.Now();
  for (bool told = false;; told = true) {
    written =
        Guarded("writing the journal", [&] { return journal_->Append(term_, {entry}, anew); });
    if (!catalog::IsUnavailableForNow(written)) {
      break;
    }
    if (!told && events_.on_event) {  // Pump, which passes events on, may be what waits here
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

// A connection is lost, a lock is held: neither is a reason to end a job. True: try again.
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
      writing_since_ = clock_.Now();  // it hangs from then on, if it does
      return true;
    }
  }
  return false;  // the job is over: nobody needs it
}

// The next group, when nobody writes any more. Without one there is nothing to write.
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
        fmt::format("the jobs database has not taken the job's journal for {} seconds", limit)));
  }
}

// A master that cannot write has nothing to say; the worker asks the next one.
Status MasterHost::SaveForWorker() {
  const Status saved = Save();
  return saved.ok() ? saved : Unavailable(saved.message());
}

Status MasterHost::Remember(const Placement& placement) {
  {
    const MutexLock lock(mutex_);
    master_.SetPlacement(placement);
  }
  return Save();
}

bool MasterHost::ShouldSave(TimePoint now) const {
  const MutexLock lock(mutex_);
  return master_.has_actions() || master_.finished() ||
         SecondsBetween(last_save_, now) >= kGroupSeconds;
}

}  // namespace sluice::elastic
