#pragma once

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

// Runs the plan where its job belongs. A job that its client need not wait for (sluice.async), that
// goes on when the client goes away (sluice.on_disconnect), or that is many processes of a gateway,
// lives in a process of its own; the rest here. What only the session itself can read stays here:
// 25001 or 0A000 where sluice.async is on, a notice where the client counts on it going on.
Status RunWhereItBelongs(const plan::Plan& plan, executor::Context& context, Session& session,
                         executor::ResultSink& sink);

// Starts the user's jobs again that wait for a process: executor::TakeOverLostJobs.
Status GoOnWithLostJobs(Session& session);

// Where RunWhereItBelongs would run the plan's job and what that outlives, as a line for a person;
// "" where the session has no choice.
std::string WhereJobLives(const plan::Plan& plan, Session& session);

// Whether sluice.async has the plan answered with its job.
bool AnswersWithJob(const plan::Plan& plan, const Session& session);

}  // namespace sluice::server
