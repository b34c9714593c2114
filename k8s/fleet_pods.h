#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "k8s/api_verbs.h"
#include "k8s/pod_labels.h"
#include "k8s/pod_state.h"
#include "k8s/suspect_nodes.h"

namespace sluice::k8s {

// What a fleet knows of its pods and wants of them: which are to be created or deleted now, when a
// request that failed is repeated, and the events that follow from what the API server says. A
// state machine without threads, clocks or calls: PodFleet makes the requests and brings the
// answers. Not thread-safe.
class FleetPods {
 public:
  // `grace_seconds`: of a pod that is deleted because it has ended. `changed` is called after each
  // change that may make something due; it may not call this object.
  FleetPods(std::string namespace_name, int grace_seconds, std::function<void()> changed);

  // Those that run, by name.
  std::map<std::string, PodIdentity> Running() const;
  // Empty: the pod has none yet, or is gone.
  std::string NodeOf(const std::string& name) const;
  std::vector<std::string> SuspectNodeNames(TimePoint now) const { return suspects_.Names(now); }

  // A pod to be created. One of this name and identity that somebody else has created is taken for
  // it. kAlreadyExists: the name is taken by another one that has not ended.
  Status Launch(const PodIdentity& identity, const elastic::ProcessSpec& spec);
  // kNotFound: no such pod, or it has ended.
  Status Stop(const std::string& name, double grace_seconds, TimePoint now);

  // Names of the pods that are to be created (or deleted) now; a request for each is under way
  // from now on. `later`: there are others, which wait for their time.
  struct Due {
    std::vector<std::string> names;
    bool later = false;
  };
  Due TakeDue(bool to_make, TimePoint now);
  // Whether there is a pod to delete that has no entry any more: its name has been taken.
  bool has_left_over() const { return !left_over_.empty(); }
  // Whether a request for each deletion has been sent.
  bool AllDeletionsSent() const;
  // Whether a pod has its node and does not run yet: it may lack something that it mounts.
  bool has_starting() const;
  // Notices nodes that do not answer, and images that do not come. True: look again soon.
  bool LookAtNodes(TimePoint now);

  // A pod that is to be created; the spec is valid until the next call. None: not any more.
  struct Order {
    PodIdentity identity;
    const elastic::ProcessSpec* spec;
  };
  std::optional<Order> OrderOf(const std::string& name) const;
  void OnCreated(const std::string& name, const ObjectAnswer& answer, TimePoint now);
  // No creation is under way any more, and those that were have no answer.
  void OnCreationsBrokenOff();

  // Whose object has to be looked up before it can be deleted, because the creation had no answer.
  std::optional<PodIdentity> WithoutUid(const std::string& name) const;
  // What was found under the name of `identity`. A pod of another owner is left alone.
  void OnLookedUp(const std::string& name, const PodIdentity& identity, const ObjectAnswer& there,
                  TimePoint now);
  // Of those of these pods that are known to exist, and of all that are left over.
  std::vector<Deletion> TakeDeletions(const std::vector<std::string>& names);
  void OnDeletionFailed(const Deletion& deletion, TimePoint now);

  // What a watch says of a pod of the job. One that is not known yet is adopted.
  void OnState(const Object& object, const PodIdentity& identity, const PodState& state, bool gone,
               TimePoint now);

  bool has_events() const { return !events_.empty(); }
  // Those since the last call, in order.
  std::deque<elastic::FleetEvent> TakeEvents();

 private:
  struct Pod {
    PodIdentity identity;
    PodEvents story;
    std::optional<elastic::ProcessSpec> spec = {};  // for one that is to be created
    bool adopted = false;                           // nobody has launched it here
    std::string node = {};
    bool accepted = false;                                  // by the kubelet of its node
    bool starting = false;                                  // on its node
    std::optional<TimePoint> placed_at = {}, ends_by = {};  // when it should have ended
    std::optional<TimePoint> without_image = {};            // since when
    std::string waiting_for = {};
    std::string uid = {};                  // empty: not created yet, as far as is known
    std::string before = {};               // the uid of an earlier one with the same name
    bool creating = false;                 // a request is under way
    std::optional<int> delete_grace = {};  // it is to be deleted
    bool deleting = false;                 // a request is under way, or was successful
    TimePoint try_again = {};
    int refusals = 0;  // in a row
  };

  void DeleteSoon(Pod& pod, int grace_seconds, TimePoint now);
  void TryAgain(Pod& pod, TimePoint now);
  void Report(std::vector<elastic::FleetEvent> events);

  const std::string namespace_name_;
  const int grace_seconds_;
  const std::function<void()> changed_;
  std::map<std::string, Pod> pods_;  // by name, until they are gone
  SuspectNodes suspects_;
  std::vector<Deletion> left_over_;  // pods without an entry
  std::deque<elastic::FleetEvent> events_;
};

}  // namespace sluice::k8s
