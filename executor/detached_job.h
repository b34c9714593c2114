#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "catalog/data_source.h"

namespace sluice::plan {
class Plan;
}

namespace sluice::executor {

struct Context;
class ResultSink;

// A statement whose job lives in a process of its own (job_process.h), which outlives this one.
struct DetachedJob {
  catalog::DataSource::StatementSession session;  // DataSource::LeaveSession
  // Where it asks for room: RoomNameOf; "": nowhere.
  std::string room;
  // On pods: the TrainingJob that asks for it; "": it gets one.
  std::string training_job = {}, training_job_uid = {};
  // Its client may go away: it is told where to find the job then.
  bool outlives_client = false;
};

// What AnswerWithJob answers.
Schema StartedJobColumns();
// Starts the job, and answers with its number, at once. What is wrong before there is a job is told
// as ever.
Status AnswerWithJob(const plan::Plan& plan, Context& context, const DetachedJob& detached,
                     ResultSink& sink);

// Starts the job, and answers as Execute would. context.stop cancels it, but for a client that has
// gone and wanted it to go on: `lets_go` says so then.
Status AttendJob(const plan::Plan& plan, Context& context, const DetachedJob& detached,
                 const std::function<bool()>& lets_go, ResultSink& sink);

}  // namespace sluice::executor
