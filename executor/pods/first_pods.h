#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/api_verbs.h"

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

class PodJobConfig;

// The pods with which a job begins besides its master's, exactly as the first master would create
// them: its parameter servers and its first workers. Created with the master, they start while it
// does; it takes those that are there for its own, and creates what is missing. Workers: as many as
// the job cannot do without, and no more than may wait for room (JobPlaces::kMaxWaiting).
struct FirstPods {
  std::vector<k8s::Creation> secrets, servers, workers;
};

// `source_secret`: the password of the source. None for a search, whose trainings have pods of
// their own. Pure; an error if the plan or the template is damaged.
Result<FirstPods> PlanFirstPods(const PodJobConfig& config, const plan::TrainPlan& plan,
                                const std::string& source_secret);

// To be called when the job's first master has its place on a node: none of them may take it. What
// cannot be created is left to the master.
void CreateFirstPods(k8s::ApiClient& client, const FirstPods& pods, const std::stop_token& stop);

}  // namespace sluice::executor
