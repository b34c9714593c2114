#include "elastic/master/master_host.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/guarded.h"

namespace sluice::elastic {
namespace {

// A person looks at it: more often is noise, and the job's tables would fill up.
constexpr double kProgressSeconds = 1.0;
// Silence and leases are looked at so often; everything else wakes the thread at once.
constexpr auto kTick = std::chrono::milliseconds(100);

}  // namespace

MasterHost::MasterHost(const Master::Options& options, Handler handler,
                       const ProgressCallback& progress, const EventCallback& events)
    : handler_(std::move(handler)),
      progress_(progress),
      events_(events),
      last_progress_(clock_.Now()),
      master_(options, clock_.Now()) {}

MasterHost::MasterHost(Master master, JournalStore* journal, int64_t term, Handler handler,
                       const ProgressCallback& progress, const EventCallback& events)
    : journal_(journal),
      term_(term),
      handler_(std::move(handler)),
      progress_(progress),
      events_(events),
      // A successor says at once how far the job is.
      last_progress_(term > 1 ? TimePoint{} : clock_.Now()),
      master_(std::move(master)) {
  epoch_written_ = master_.queue().epoch();
}

template <typename Function>
auto MasterHost::With(const Function& function) {
  const MutexLock lock(mutex_);
  ++changes_;
  changed_.notify_all();
  return function(master_, clock_.Now());
}

Incarnation MasterHost::Expect(const std::string& name) {
  return With([&](Master& master, TimePoint now) { return master.Expect(name, now); });
}

void MasterHost::Start() {
  With([](Master& master, TimePoint now) {
    master.Start(now);
    return 0;
  });
}

void MasterHost::NotifyIfMoved(const std::pair<int64_t, size_t>& before) {
  if (master_.staleness().state() != before) {
    ++changes_;
    changed_.notify_all();
  }
}

Result<MasterLink::Answer> MasterHost::Take(Incarnation worker, bool waiting,
                                            const std::vector<int64_t>& held, double wait_seconds) {
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

// The first push of an epoch changes what the last one's evaluation judges: a later master has to
// know that this is over.
bool MasterHost::BeginsEpoch(const MasterLink::Answer& answer) const {
  const Task& task = answer.task;
  if (answer.kind != MasterLink::Answer::Kind::kTask || task.kind != Task::Kind::kTrain) {
    return false;
  }
  const MutexLock lock(mutex_);
  return task.epoch > epoch_written_;
}

Result<MasterLink::Answer> MasterHost::WaitForTask(Incarnation worker, bool waiting,
                                                   const std::vector<int64_t>& held,
                                                   double wait_seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_seconds);
  MutexLock lock(mutex_);
  for (;;) {
    const auto before = master_.staleness().state();
    Result<MasterLink::Answer> answer = master_.Take(worker, waiting, held, clock_.Now());
    NotifyIfMoved(before);
    RETURN_IF_ERROR(answer.status());
    if (!waiting || answer->kind != MasterLink::Answer::Kind::kNothing) {
      return answer;
    }
    const uint64_t seen = changes_;
    while (changes_ == seen) {
      if (changed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
        return answer;
      }
    }
  }
}

Result<WorldAnswer> MasterHost::Meet(Incarnation worker, const WorldArrival& arrival,
                                     double wait_seconds) {
  ASSIGN_OR_RETURN(WorldAnswer answer, WaitForRegroup(worker, arrival, wait_seconds));
  if (answer.world.id != 0 || answer.work == WorldAnswer::Work::kFinished) {
    // Members train on without a word from the master: a later one has to know where they went.
    RETURN_IF_ERROR(SaveForWorker());
  }
  return answer;
}

Result<WorldAnswer> MasterHost::WaitForRegroup(Incarnation worker, const WorldArrival& arrival,
                                               double wait_seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_seconds);
  MutexLock lock(mutex_);
  ++changes_;  // its coming may be what others wait for
  changed_.notify_all();
  for (;;) {
    ASSIGN_OR_RETURN(WorldAnswer answer, master_.Meet(worker, arrival, clock_.Now()));
    if (answer.work != WorldAnswer::Work::kWait || answer.world.id != 0) {
      ++changes_;
      changed_.notify_all();
      return answer;
    }
    const uint64_t seen = changes_;
    while (changes_ == seen) {
      if (changed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
        return answer;
      }
    }
  }
}

Result<StepAnswer> MasterHost::ReportStep(Incarnation worker, int64_t world, int64_t closed,
                                          const RoundPosition& position) {
  return With([&](Master& master, TimePoint now) {
    return master.ReportStep(worker, world, closed, position, now);
  });
}

Status MasterHost::Written(Incarnation worker, const std::string& draft,
                           const Result<CheckpointManifest::File>& file) {
  return With(
      [&](Master& master, TimePoint now) { return master.Written(worker, draft, file, now); });
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

void MasterHost::OnCheckpoint() {
  With([](Master& master, TimePoint now) {
    master.OnCheckpoint(now);
    return 0;
  });
}

void MasterHost::OfferDraft(const CheckpointDirectory::Draft& draft) {
  With([&](Master& master, TimePoint) {
    master.OfferDraft(draft);
    return 0;
  });
}

std::optional<Master::WorldCut> MasterHost::TakeWorldCut() {
  return With([](Master& master, TimePoint) { return master.TakeWorldCut(); });
}

void MasterHost::OnWeightsKept(const std::string& digest) {
  With([&](Master& master, TimePoint now) {
    master.OnWeightsKept(digest, now);
    return 0;
  });
}

std::string MasterHost::best_digest() const {
  const MutexLock lock(mutex_);
  return master_.best_digest();
}

bool MasterHost::parameters_lost() const {
  const MutexLock lock(mutex_);
  return master_.parameters_lost();
}

Status MasterHost::Deliver(Incarnation worker, models::NetworkWeights weights) {
  return With(
      [&](Master& master, TimePoint) { return master.Deliver(worker, std::move(weights)); });
}

models::NetworkWeights MasterHost::TakeWeights() {
  return With([](Master& master, TimePoint) { return master.TakeWeights(); });
}

Result<LeaseStatus> MasterHost::Report(Incarnation worker, const TaskReport& report) {
  return With([&](Master& master, TimePoint now) { return master.Report(worker, report, now); });
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
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_seconds);
  MutexLock lock(mutex_);
  for (bool late = false;;) {
    const auto before = master_.staleness().state();
    const int64_t begun = master_.staleness().begun();
    ASSIGN_OR_RETURN(const bool may, master_.MayBegin(worker, pushed, clock_.Now()));
    *entered = *entered || master_.staleness().begun() != begun;
    NotifyIfMoved(before);
    if (may || late) {
      return may;
    }
    const uint64_t seen = changes_;
    while (changes_ == seen && !late) {
      late = changed_.wait_until(lock.native(), until) == std::cv_status::timeout;
    }
  }
}

Status MasterHost::Fail(Incarnation worker, int64_t task, const Status& cause) {
  return With([&](Master& master, TimePoint now) { return master.Fail(worker, task, cause, now); });
}

Status MasterHost::Leave(Incarnation worker) {
  return With([&](Master& master, TimePoint now) { return master.Leave(worker, now); });
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

void MasterHost::Wait(Incarnation worker, const std::string& what) {
  With([&](Master& master, TimePoint) {
    master.Wait(worker, what);
    return 0;
  });
}

void MasterHost::OnExit(const FleetEvent& event) {
  With([&](Master& master, TimePoint now) {
    master.OnExit(event.name, event.exit_class, event.message, now);
    return 0;
  });
}

void MasterHost::Scale(uint32_t workers) {
  With([&](Master& master, TimePoint now) {
    master.Scale(workers, now);
    return 0;
  });
}

void MasterHost::OnNotStarted(const std::string& name, const std::string& why) {
  With([&](Master& master, TimePoint now) {
    master.OnNotStarted(name, why, now);
    return 0;
  });
}

void MasterHost::Abort(const Status& cause) {
  With([&](Master& master, TimePoint) {
    master.Abort(cause);
    return 0;
  });
}

void MasterHost::LoseParameters(const Status& cause) {
  With([&](Master& master, TimePoint) {
    master.LoseParameters(cause);
    return 0;
  });
}

void MasterHost::AddEvent(const std::string& kind, const std::string& detail) {
  With([&](Master& master, TimePoint) {
    master.AddEvent(kind, detail);
    return 0;
  });
}

void MasterHost::Pump() {
  std::vector<Master::Action> actions;
  std::vector<Master::Event> events;
  std::vector<Progress> progress;
  const TimePoint now = clock_.Now();
  const bool saves = ShouldSave(now);
  {
    const MutexLock lock(mutex_);
    if (saves) {
      actions = master_.TakeActions();
    }
    events = master_.TakeEvents();
    progress = master_.TakeEpochEnds();
    if (progress.empty() && !master_.finished() &&
        SecondsBetween(last_progress_, now) >= kProgressSeconds) {
      progress.push_back(master_.Describe(now));
    }
  }
  if (saves) {
    last_save_ = now;
    if (!Save().ok()) {  // with all that led to the actions
      return;
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
  for (const Master::Action& action : actions) {
    const Status status = Guarded("acting for a job", [&] { return handler_(action); });
    With([&](Master& master, TimePoint) {
      if (!status.ok()) {
        master.Abort(status);
      }
      return 0;
    });
  }
}

void MasterHost::Run(std::stop_token stop) {
  const std::stop_callback wake(stop, [this] { Abort(Cancelled("the training was cancelled")); });
  const std::jthread judge([this](const std::stop_token& done) { Judge(done); });
  uint64_t seen = 0;
  while (!finished()) {
    Pump();
    MutexLock lock(mutex_);
    if (changes_ == seen) {
      changed_.wait_for(lock.native(), kTick);
    }
    seen = changes_;
    master_.Tick(clock_.Now());
  }
  Pump();
  if (!result().ok()) {
    TellLastProgress();
  }
}

void MasterHost::TellLastProgress() {
  if (progress_) {
    progress_(With([](Master& master, TimePoint now) { return master.Describe(now); }));
  }
}

void MasterHost::Judge(const std::stop_token& done) {
  std::mutex mutex;
  std::condition_variable_any over;
  std::unique_lock<std::mutex> own(mutex);
  while (!over.wait_for(own, done, kTick, [&done] { return done.stop_requested(); })) {
    const MutexLock lock(mutex_);
    const Status judged =
        Guarded("judging who lives", [this]() NO_THREAD_SAFETY_ANALYSIS {  // with the lock
          CheckJournal(clock_.Now());
          master_.Tick(clock_.Now());
          return Status();
        });
    if (!judged.ok()) {
      master_.Abort(judged);
    }
  }
}

void MasterHost::Dismiss() {
  With([](Master& master, TimePoint) {
    master.Dismiss();
    return 0;
  });
}

bool MasterHost::finished() const {
  const MutexLock lock(mutex_);
  return master_.finished();
}

Status MasterHost::result() const {
  const MutexLock lock(mutex_);
  return saved_.ok() ? master_.result() : saved_;
}

TrainOutcome MasterHost::Outcome() const {
  const MutexLock lock(mutex_);
  return master_.Outcome();
}

}  // namespace sluice::elastic
