#include "elastic/master/master_host.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include "base/guarded.h"

namespace sluice::elastic {
namespace {

// Progress is for people: more often would be noise, and would fill the job's tables.
constexpr auto kProgressEvery = std::chrono::milliseconds(1000);
constexpr auto kFirstProgress = std::chrono::milliseconds(150);  // after a job's beginning
// How often silence and leases are checked; everything else wakes the thread at once.
constexpr auto kPollInterval = std::chrono::milliseconds(100);

}  // namespace

MasterHost::MasterHost(Master master, JournalStore* journal, JournalTerm term, Handler handler,
                       const ProgressCallback& progress, const EventCallback& events)
    : journal_(journal),
      term_(term),
      handler_(std::move(handler)),
      progress_(progress),
      events_(events),
      // A successor reports the job's progress at once.
      last_progress_(term > JournalTerm::First() ? TimePoint{}
                                                 : clock_.Now() + kFirstProgress - kProgressEvery),
      master_(std::move(master)) {
  epoch_written_ = master_.queue().epoch();
}

void MasterHost::NotifyIfMoved(const std::pair<int64_t, size_t>& before) {
  if (master_.staleness().state() != before) {
    ++changes_;
    changed_.notify_all();
  }
}

// Calls `attempt` with the lock, and again after each change, until it returns true or this many
// seconds have passed.
template <typename Function>
void MasterHost::Retry(double seconds, const Function& attempt) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  MutexLock lock(mutex_);
  while (!attempt()) {
    const uint64_t seen = changes_;
    while (changes_ == seen) {
      if (changed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
        return;
      }
    }
  }
}

Result<MasterLink::Answer> MasterHost::Take(Incarnation worker, bool waiting,
                                            const std::vector<TaskId>& held, double wait_seconds) {
  ASSIGN_OR_RETURN(MasterLink::Answer answer, WaitForTask(worker, waiting, held, wait_seconds));
  const bool begins = BeginsEpoch(answer);
  if (answer.kind == MasterLink::Answer::Kind::kFinished || begins) {
    RETURN_IF_ERROR(SaveForWorker());
  }
  if (begins) {
    const MutexLock lock(mutex_);
    epoch_written_ = std::max(epoch_written_, answer.task.epoch);
  }
  return answer;
}

// The first push of an epoch changes the parameters judged by the previous one's evaluation: a
// later master has to know that this evaluation is over.
bool MasterHost::BeginsEpoch(const MasterLink::Answer& answer) const {
  const Task& task = answer.task;
  if (answer.kind != MasterLink::Answer::Kind::kTask || task.kind != Task::Kind::kTrain) {
    return false;
  }
  const MutexLock lock(mutex_);
  return task.epoch > epoch_written_;
}

Result<MasterLink::Answer> MasterHost::WaitForTask(Incarnation worker, bool waiting,
                                                   const std::vector<TaskId>& held,
                                                   double wait_seconds) {
  Result<MasterLink::Answer> answer = Unavailable("not asked");
  Retry(wait_seconds, [&]() REQUIRES(mutex_) {
    const auto before = master_.staleness().state();
    answer = master_.Take(worker, waiting, held, clock_.Now());
    NotifyIfMoved(before);
    return !answer.ok() || !waiting || answer->kind != MasterLink::Answer::Kind::kNothing;
  });
  return answer;
}

Result<WorldAnswer> MasterHost::Regroup(Incarnation worker, const WorldArrival& arrival,
                                        double wait_seconds) {
  ASSIGN_OR_RETURN(WorldAnswer answer, WaitForRegroup(worker, arrival, wait_seconds));
  if (answer.world.id != WorldId(0) || answer.work == WorldAnswer::Work::kFinished) {
    // Members train on without hearing from the master: a later one has to know where they
    // continued.
    RETURN_IF_ERROR(SaveForWorker());
  }
  return answer;
}

Result<WorldAnswer> MasterHost::WaitForRegroup(Incarnation worker, const WorldArrival& arrival,
                                               double wait_seconds) {
  With([](Master&, TimePoint) {});  // others may be waiting for it
  Result<WorldAnswer> answer = Unavailable("not asked");
  Retry(wait_seconds, [&]() REQUIRES(mutex_) {
    answer = master_.Regroup(worker, arrival, clock_.Now());
    if (!answer.ok()) {
      return true;
    }
    const bool goes = answer->work != WorldAnswer::Work::kWait || answer->world.id != kNoWorld;
    if (goes) {
      ++changes_;
      changed_.notify_all();
    }
    return goes;
  });
  return answer;
}

Status MasterHost::SaveCut(CheckpointManifest* manifest) const {
  const MutexLock lock(mutex_);
  if (master_.finished()) {
    return Cancelled("the job is over");
  }
  master_.SaveCut(manifest);
  return manifest->queue_state.empty()
             ? ResourceExhausted("the queue of this job is too large for a checkpoint")
             : Status();
}

Result<bool> MasterHost::MayBegin(Incarnation worker, int64_t pushed, double wait_seconds) {
  bool entered = false;
  ASSIGN_OR_RETURN(const bool may, WaitToBegin(worker, pushed, wait_seconds, &entered));
  if (entered) {
    RETURN_IF_ERROR(SaveForWorker());  // a later master waits for it, too
  }
  return may;
}

Result<bool> MasterHost::WaitToBegin(Incarnation worker, int64_t pushed, double wait_seconds,
                                     bool* entered) {
  Result<bool> may = false;
  Retry(wait_seconds, [&]() REQUIRES(mutex_) {
    const auto before = master_.staleness().state();
    const int64_t begun = master_.staleness().begun();
    may = master_.MayBegin(worker, pushed, clock_.Now());
    *entered = *entered || master_.staleness().begun() != begun;
    NotifyIfMoved(before);
    return !may.ok() || *may;
  });
  return may;
}

Result<bool> MasterHost::Heartbeat(Incarnation worker) {
  bool over = false;
  {
    const MutexLock lock(mutex_);
    ASSIGN_OR_RETURN(over, master_.Heartbeat(worker, clock_.Now()));
  }
  if (over) {
    RETURN_IF_ERROR(SaveForWorker());
  }
  return over;
}

void MasterHost::Pump() {
  SaveAndAct();
  Report();
}

void MasterHost::Report() {
  std::vector<Master::Event> events;
  std::vector<Progress> progress;
  const TimePoint now = clock_.Now();
  {
    const MutexLock lock(mutex_);
    events = master_.outbox().TakeEvents();
    progress = master_.outbox().TakeEpochEnds();
    if (progress.empty() && !master_.finished() && now - last_progress_ >= kProgressEvery) {
      progress.push_back(master_.Describe(now));
    }
  }
  if (events_.on_event) {
    for (const Master::Event& event : events) {
      events_.on_event(event.kind, event.detail);
    }
  }
  if (!progress.empty()) {
    last_progress_ = now;
  }
  if (progress_) {
    for (const Progress& one : progress) {
      progress_(one);
    }
  }
}

void MasterHost::Run(std::stop_token stop) {
  const std::stop_callback wake(stop, [this] {
    With([](Master& master, TimePoint) { master.Abort(Cancelled("the training was cancelled")); });
  });
  const std::jthread judge([this](const std::stop_token& done) { Judge(done); });
  std::jthread writer([this](const std::stop_token& done) { Write(done); });
  uint64_t seen = 0;
  while (!finished()) {
    Report();
    MutexLock lock(mutex_);
    if (changes_ == seen) {
      changed_.wait_for(lock.native(), kPollInterval);
    }
    seen = changes_;
    master_.Tick(clock_.Now());
    if (master_.outbox().has_actions()) {
      to_do_.notify_one();
    }
  }
  writer.request_stop();
  writer.join();
  Report();
  if (!result().ok()) {
    ReportLastProgress();
  }
}

void MasterHost::ReportLastProgress() {
  if (progress_) {
    progress_(With([](Master& master, TimePoint now) { return master.Describe(now); }));
  }
}

void MasterHost::Judge(const std::stop_token& done) {
  std::mutex mutex;
  std::condition_variable_any over;
  std::unique_lock<std::mutex> own(mutex);
  const std::function<void()> judge = [this]() REQUIRES(mutex_) {
    CheckJournal(clock_.Now());
    master_.Tick(clock_.Now());
    if (master_.outbox().has_actions()) {
      to_do_.notify_one();
    }
  };
  while (!over.wait_for(own, done, kPollInterval, [&done] { return done.stop_requested(); })) {
    const MutexLock lock(mutex_);
    const Status judged = Guarded("judging who lives", judge);
    if (!judged.ok()) {
      master_.Abort(judged);
    }
  }
}

bool MasterHost::finished() const {
  const MutexLock lock(mutex_);
  return master_.finished();
}

bool MasterHost::suspended() const {
  const MutexLock lock(mutex_);
  return saved_.ok() && master_.suspended();
}

Status MasterHost::result() const {
  const MutexLock lock(mutex_);
  return saved_.ok() ? master_.result() : saved_;
}

Status MasterHost::Remember(const Placement& placement) {
  {
    const MutexLock lock(mutex_);
    master_.SetPlacement(placement);
  }
  return Save();
}

}  // namespace sluice::elastic
