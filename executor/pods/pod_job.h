#pragma once

#include <string>
#include <string_view>

#include "k8s/pod_spec.h"

// What the gateway and the masters of a job on pods agree on.
namespace sluice::executor {

class PodJobConfig;

// Where a master listens in its pod, and its Service leads to.
inline constexpr int kMasterPort = 7077;

// What a master ends with when its job is suspended: none follows it until it is resumed.
inline constexpr int kSuspendedExit = 75;

// Where it answers Prometheus: GET /metrics.
inline constexpr int kMetricsPort = 7078;

// Records of the job's row (catalog::JobStore::KeepRecord), beside kStatementRecord.
inline constexpr char kDataRecord[] = "data";            // PodJobData
inline constexpr char kSnapshotRecords[] = "snapshot/";  // and its name: HeldSnapshot

// "job7-3fa9c2": begins the names of all that Kubernetes has of a job. Several databases may have a
// job of that number.
std::string PodJobName(int64_t job, std::string_view uid);
// With which all goes that Kubernetes has of the job when it has ended, but for its TrainingJob,
// which owns this one.
k8s::Owner OwnerOf(const PodJobConfig& config);
std::string MasterPodName(std::string_view job_name, int64_t number);

}  // namespace sluice::executor
