#include "elastic/master_host.h"

// When what a master has decided is written down.
namespace sluice::elastic {
namespace {

// Decisions that nobody waits for are written in groups, so often: what a master's death leaves out
// is done again.
constexpr double kGroupSeconds = 0.05;

}  // namespace

Status MasterHost::Save() {
  if (journal_ == nullptr) {
    return Status();
  }
  const MutexLock writing(journal_mutex_);
  std::string entry;
  bool anew = false;
  {
    const MutexLock lock(mutex_);
    RETURN_IF_ERROR(saved_);
    entry = master_.TakeJournal(&anew);
  }
  if (entry.empty()) {
    return Status();
  }
  // While this group is being written, the next one gathers.
  const Status written = journal_->Append(term_, {entry}, anew);
  if (!written.ok()) {
    const MutexLock lock(mutex_);
    saved_ = written;
    master_.Abort(written);
    ++changes_;
    changed_.notify_all();
  }
  return written;
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
