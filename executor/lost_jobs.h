#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/job_store.h"

namespace sluice::executor {

// Begins JobRunner::place of a job on pods: who keeps its masters says when it is lost.
inline constexpr std::string_view kPodsPlace = "pods/";

// This process, as the runner of a job.
catalog::JobRunner ThisProcess();

// A running job says that it lives so often; one of another machine that has not for so much longer
// is given up. Of this machine, the system knows which processes there are.
inline constexpr double kSeenSeconds = 10;
inline constexpr double kUnseenSeconds = 180;

// What a job in processes of its own runs (JobConfig), as a record of its row
// (catalog::JobStore::KeepRecord): another process can go on with it.
inline constexpr char kStatementRecord[] = "statement";
// So often, and no further once nothing has come of it since the last checkpoint.
inline constexpr int kMostTakeovers = 3;
inline constexpr const char* kTakenOverEvent = "taken_over";

// A job whose process is gone, and which waits for another one.
struct WaitingJob {
  catalog::Job job;
  std::string statement;  // its kStatementRecord
};
// What it waits for, for a person.
std::string WhatFor(const WaitingJob& waiting);

// How a job ends whose process was lost for good: with what to do about it, and from which
// checkpoint it would go on.
Status LostJob(catalog::JobStore& jobs, const catalog::Job& job);

// Jobs whose process is gone (killed, or its machine was) are RUNNING as far as anybody could write
// down. Marks those that nobody can go on with FAILED, with what to do about it, and those that
// were asked to stop CANCELLED; the others are the answer.
Result<std::vector<WaitingJob>> FindWaitingJobs(catalog::JobStore& jobs);
Status MarkLostJobs(catalog::JobStore& jobs);
// Whether another process can go on with a job of that number.
Result<bool> CanBeTakenOver(catalog::JobStore& jobs, int64_t job);

}  // namespace sluice::executor
