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
  catalog::DataSource::StatementSession session;  // DataSource::ExportSession
  // Where the job asks for room: RoomNameOf; "": nowhere.
  std::string room;
  // On pods: the TrainingJob that asks for the job; "": one is created for it.
  std::string training_job = {}, training_job_uid = {};
  // Its client may disconnect, and is therefore told where to find the job.
  bool outlives_client = false;
};

// The columns of AnswerWithJob's answer.
Schema StartedJobColumns();
// Starts the job and answers at once with its number. Errors before there is a job are returned as
// usual.
Status AnswerWithJob(const plan::Plan& plan, Context& context, const DetachedJob& detached,
                     ResultSink& sink);

// Starts the job and answers as Execute would. context.stop cancels the job, unless the client has
// disconnected and wants it to continue, which `lets_go` says.
Status FollowJob(const plan::Plan& plan, Context& context, const DetachedJob& detached,
                 const std::function<bool()>& lets_go, ResultSink& sink);

}  // namespace sluice::executor
