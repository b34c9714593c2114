#pragma once

#include <stop_token>
#include <string>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::executor {
struct Context;
class ResultSink;
}  // namespace sluice::executor

namespace sluice::plan {
class Plan;
}

namespace sluice::server {

class Session;

// Runs the plan where its job belongs. A job gets a process of its own if its client need not wait
// (sluice.async), if it continues when the client disconnects (sluice.on_disconnect), or if it has
// many processes under a gateway; other jobs run here. A plan that reads what only this session can
// read stays here: 25001 or 0A000 if sluice.async is on, and a notice if the client expects the job
// to continue.
// 53300: the gateway, or the role, runs as many jobs as it may.
// `waits`: for the job's end, whatever sluice.async says.
Status RunJob(const plan::Plan& plan, executor::Context& context, Session& session,
              executor::ResultSink& sink, bool waits = false);

// Restarts the user's jobs that have lost their process: executor::TakeOverLostJobs.
Status ResumeLostJobs(Session& session);

// One line for a person: where RunJob would run the plan's job, and what the job
// outlives there; "" if the session has no choice.
std::string DescribeJobPlace(const plan::Plan& plan, Session& session);

// One line for a person: how many of a training's workers would start now, and why the others would
// wait; "" if the plan has none.
std::string DescribeStart(const plan::Plan& plan, Session& session, const std::stop_token& stop);

// Whether the plan's answer is its job (sluice.async).
bool AnswersWithJob(const plan::Plan& plan, const Session& session);

}  // namespace sluice::server
