#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/job_store.h"

namespace sluice::executor {

// Prefix of JobRunner::place for a job on pods: the keeper of its masters decides when it is lost.
inline constexpr std::string_view kPodsPlace = "pods/";

// This process, as the runner of a job.
catalog::JobRunner ThisProcess();

// Interval at which a running job shows in its row that it lives, and the silence after which a job
// of another machine is given up. On this machine, the system knows which processes exist.
inline constexpr double kSeenSeconds = 10;
inline constexpr double kUnseenSeconds = 180;

// What a job in processes of its own runs (JobConfig), as a record of its row
// (catalog::JobStore::KeepRecord), so that another process can continue it.
inline constexpr char kStatementRecord[] = "statement";
// Limit of takeovers since the last checkpoint.
inline constexpr int kMaxTakeovers = 3;
inline constexpr const char* kTakenOverEvent = "taken_over";

// A job that has lost its process and waits for another one.
struct WaitingJob {
  catalog::Job job;
  std::string statement;  // its kStatementRecord
};
// What it waits for, as text.
std::string WhatFor(const WaitingJob& waiting);

// The error of a job whose process was lost for good: with what to do about it, and the checkpoint
// that it would continue from.
Status LostJob(catalog::JobStore& jobs, const catalog::Job& job);

// Jobs whose process was killed, or whose machine went down, are still RUNNING in the catalog.
// Marks those that no process can continue FAILED, with what to do about it, and those that were
// asked to stop CANCELLED; returns the others.
Result<std::vector<WaitingJob>> FindWaitingJobs(catalog::JobStore& jobs);
Status MarkLostJobs(catalog::JobStore& jobs);
// For the first process of a container, which takes all others with it when it ends: their jobs
// need not be silent for kUnseenSeconds before processes elsewhere continue them.
Status LeaveJobsOfThisPlace(catalog::JobStore& jobs);
// A job on pods of which nothing was heard for kUnseenSeconds: its masters wait for something, or
// nobody is there who would start one, as in a namespace that was deleted.
bool IsSilentOnPods(const catalog::JobRunner& runner);
// Whether another process can continue the job with that number.
Result<bool> CanBeTakenOver(catalog::JobStore& jobs, int64_t job);

}  // namespace sluice::executor
