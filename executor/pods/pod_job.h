#pragma once

#include <string>
#include <string_view>

#include "k8s/pod_spec.h"

namespace sluice::elastic {
struct JobEndpoint;
}

// Conventions between the gateway and the masters of a job on pods.
namespace sluice::executor {

class PodJobConfig;

// Port that a master listens at in its pod, and that its Service leads to.
inline constexpr int kMasterPort = 7077;

// Processors that a master's pod requests.
inline constexpr double kMasterCpu = 0.1;

// Exit code of a master whose job is suspended: it has no successor until the job is resumed.
inline constexpr int kSuspendedExit = 75;

// Port that serves GET /metrics to Prometheus.
inline constexpr int kMetricsPort = 7078;

// Records of the job's row (catalog::JobStore::KeepRecord), in addition to kStatementRecord.
inline constexpr char kDataRecord[] = "data";            // PodJobData
inline constexpr char kSnapshotRecords[] = "snapshot/";  // followed by its name: HeldSnapshot

// "job7-3fa9c2": prefix of the names of all the job's Kubernetes objects. Jobs of several databases
// may have the same number.
std::string PodJobName(int64_t job, std::string_view uid);
// A job that is resumed, or has lost its data, begins another run, whose name is that prefix and a
// number ("job7-3fa9c2-4"). Pods of an earlier one may still live on a node that does not answer.
std::string RunName(std::string_view job_name, int64_t master);
bool IsOfRun(std::string_view pod_name, std::string_view run);
// The owner of all the job's Kubernetes objects, deleted when the job has ended; only the
// TrainingJob, which owns this owner, stays.
k8s::Owner OwnerOf(const PodJobConfig& config);
// Where the job's processes find its masters, whichever is the newest, and by what they recognise
// each other; under the name of its first run.
elastic::JobEndpoint EndpointOf(const PodJobConfig& config);
std::string MasterPodName(std::string_view job_name, int64_t number);

}  // namespace sluice::executor
