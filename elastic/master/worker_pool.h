#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "elastic/queue/membership.h"

namespace sluice::elastic {

// Which processes work for a job: how many are wanted, which are to be started or drained, and
// whether another one is started for one that was lost. It says what is to be done; somebody else
// does it. Pure; not thread-safe.
class WorkerPool {
 public:
  struct Options {
    std::string job_name;
    uint32_t workers = 1;  // wanted, until Scale says otherwise
    double silence_seconds = 10;
  };
  // A worker that ran out of memory is replaced by one that may have more, so often.
  static constexpr int kMemoryRaises = 4;
  static constexpr double kMemoryFactor = 1.5;
  // So many processes may start and fail in a row before one of them has trained a batch: then no
  // more are started. Preemption is normal life and gets more patience; it ends too, so that a
  // process that is killed at every start (a memory limit) does not start for ever.
  static constexpr int kFailedStarts = 8;
  static constexpr int kPreemptedStarts = 64;

  struct Process {
    std::string name;
    Incarnation incarnation = kNobody;
    double memory_factor = 1;  // times what the statement asked for
  };
  struct Change {
    std::vector<Process> start;
    std::vector<Process> drain;  // these hand their tasks back and leave
  };
  struct Lost {
    Membership::Worker worker;
    bool drained = false;  // it was meant to leave
  };

  explicit WorkerPool(const Options& options)
      : options_(options), wanted_(options.workers), members_(options.silence_seconds) {}

  // There is a fleet: from now on so many processes are kept as are wanted.
  void Open() { open_ = true; }
  bool open() const { return open_; }
  uint32_t wanted() const { return wanted_; }
  // `give_up`: names of those that leave first, where some have to.
  Change Scale(uint32_t workers, TimePoint now, const std::vector<std::string>& give_up = {});
  // Those that had to wait, and whose time has come.
  std::vector<Process> StartDue(TimePoint now);
  // A worker that someone else starts.
  Incarnation Expect(const std::string& name, TimePoint now) { return members_.Expect(name, now); }

  // A worker spoke. True: for the first time. Aborted: it has been given up.
  Result<bool> Contact(Incarnation worker, TimePoint now);
  // What it trained has arrived: starts are worth while.
  void OnCommitted(Incarnation worker);
  // It is gone, or given up; none: long since.
  std::optional<Lost> Remove(Incarnation worker);
  // The process that takes its place now; none: nobody is to, or somebody later. An error: too many
  // were lost in a row.
  Result<std::optional<Process>> Replace(const Lost& lost, ExitClass how, const std::string& why,
                                         TimePoint now);
  // The fleet has no room for it: asked for again in a second. True: that is news.
  bool OnNoRoom(Incarnation worker, TimePoint now);
  // A worker ran out of memory. What the next ones get, as Process::memory_factor; none: no more.
  std::optional<double> RaiseMemory();

  bool drained(Incarnation worker) const { return drained_.contains(worker); }
  // Nobody is left, and nobody waits to be started.
  bool Empty() const { return members_.size() + later_starts_.size() == 0; }
  const Membership& members() const { return members_; }
  // What another one needs to go on, with the members.
  int started() const { return started_; }
  void Restore(int started, Incarnation next, const std::vector<Membership::Worker>& members);

 private:
  // Workers, without those that are drained, with those that start later.
  size_t Staying() const { return members_.size() - drained_.size() + later_starts_.size(); }
  Process Start(TimePoint now);
  void StartLater(double seconds, TimePoint now);
  std::vector<Process> Drain(size_t count, const std::vector<std::string>& first);
  double memory_factor() const;

  const Options options_;
  bool open_ = false;
  uint32_t wanted_;
  Membership members_;
  std::set<Incarnation> drained_;
  int started_ = 0;
  int failed_starts_ = 0;  // since the last time that a new worker got anywhere
  int preempted_starts_ = 0;
  int memory_raises_ = 0;
  bool waits_for_room_ = false;          // told already
  std::vector<TimePoint> later_starts_;  // replacements that wait
};

}  // namespace sluice::elastic
