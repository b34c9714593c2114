#pragma once

#include <string>
#include <string_view>

// What the gateway and the masters of a job on pods agree on.
namespace sluice::executor {

// Where a master listens in its pod, and its Service leads to.
inline constexpr int kMasterPort = 7077;

// Records of the job's row (catalog::JobStore::KeepRecord), beside kStatementRecord.
inline constexpr char kDataRecord[] = "data";            // PodJobData
inline constexpr char kSnapshotRecords[] = "snapshot/";  // and its name: HeldSnapshot

// "job7-3fa9c2": begins the names of all that Kubernetes has of a job. Several databases may have a
// job of that number.
std::string PodJobName(int64_t job, std::string_view uid);
std::string MasterPodName(std::string_view job_name, int64_t number);

}  // namespace sluice::executor
