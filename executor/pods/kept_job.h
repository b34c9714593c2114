#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "k8s/api_request.h"
#include "k8s/pod_spec.h"
#include "k8s/pod_state.h"
#include "k8s/suspect_nodes.h"

namespace sluice::executor {

// What a keeper knows of one job on pods, and what the job needs next: a state machine without a
// thread, a clock or an API. Not thread-safe.
class KeptJob {
 public:
  struct Job {
    std::string uid;
    std::string name;    // of its Service; its pods' names begin with it
    std::string secret;  // which its masters mount
    std::string service_uid;
    std::string image;
    int64_t number = 0;     // its row
    k8s::Owner owner = {};  // its TrainingJob; none: of an earlier version
  };
  struct Master {
    std::string pod_uid;
    k8s::PodState state;
    bool gone = false;
    std::optional<TimePoint> placed_at = {};      // on a node that has said nothing of it since
    std::optional<TimePoint> without_image = {};  // since when
  };
  // kMaster: make the master of number `newest`; kClear: delete the pods of a suspended job's
  // masters; kEnd: the job is over, delete what Kubernetes has of it.
  enum class Need { kNothing, kMaster, kClear, kEnd };

  // May be called again with what is now known of the same job.
  void Describe(Job job) { job_ = std::move(job); }
  const Job& job() const { return job_; }

  // A master's pod appeared, changed or is gone.
  void OnMasterPod(int64_t number, const std::string& pod_uid, k8s::PodState state, bool gone);
  // The Service leads to master `number` (0: to none yet), as another keeper has decided.
  void Follow(int64_t number);
  // This process keeps the job from now on. The newest master, where no pod of its own is known,
  // may still run on a node that nobody can ask: another one follows it.
  void TakeCharge();

  Need NeedNow(TimePoint now);
  // How NeedNow's kMaster went.
  void OnMade(TimePoint now);
  void OnNotMade(TimePoint next_try) { due_ = next_try; }
  // The API server did not make it: it is tried again in a second, but where the reason will not
  // pass the job is given up.
  void OnRefused(k8s::Fault fault, const Status& why, TimePoint now);
  void OnClearing(TimePoint next_look) { due_ = next_look; }

  // Why it has no master that runs, for people; nullopt: it has one, or will have at once.
  struct Trouble {
    std::string reason;  // one word
    std::string message;
    bool operator==(const Trouble&) const = default;
  };
  std::optional<Trouble> trouble() const;

  // Its Service was deleted: the pods of its masters go, too, and no further one is made.
  void OnServiceGone() { service_gone_ = true; }
  void OnSilent(int64_t number, TimePoint now);  // that master no longer renews its Lease
  void GiveUp(Status why);                       // the first reason stays
  void Suspend(bool wanted, bool done);

  const std::optional<Status>& given_up() const { return given_up_; }
  int64_t newest() const { return newest_; }
  // The newest master has been made, and: has a node and does not run yet; its container runs.
  bool starts() const;
  bool runs() const;
  // Whether the first master has a node: not yet, yes, or it is not the one that matters any more.
  enum class FirstMaster { kWaits, kPlaced, kOver };
  FirstMaster first_master() const;
  // Where the next master had better not be placed.
  std::vector<std::string> avoided(TimePoint now) const { return suspects_.Names(now); }
  // Pods of masters that still exist, with their uids, by number.
  std::map<int64_t, std::string> pods() const;

 private:
  Need NeedOfSuspended(TimePoint now) const;
  // The newest master is lost. False: too many were lost one after the other.
  bool Replace(const Master& master, TimePoint now);
  // It was placed on a node that does not answer.
  static bool LacksImage(Master& master, TimePoint now);
  bool Unheard(Master& master, TimePoint now);

  Job job_;
  int64_t newest_ = 0;  // number of the master that is to run; 0: none yet
  std::map<int64_t, Master> masters_;
  bool made_ = false;  // the newest one
  TimePoint made_at_{};
  TimePoint due_{};
  int lost_ = 0;  // one after the other, soon after they were made
  std::optional<Status> given_up_;
  std::optional<Trouble> refused_;  // the newest one, by the API server
  k8s::SuspectNodes suspects_;
  bool service_gone_ = false;
  bool silent_ = false;                       // the newest one has not renewed its Lease
  bool suspend_ = false, suspended_ = false;  // as asked for; as the TrainingJob's status says
};

}  // namespace sluice::executor
