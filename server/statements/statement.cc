#include "server/statements/statement.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>

#include "base/bad_rows.h"
#include "base/clock.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/executor.h"
#include "executor/local/detached_job.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "server/statements/analyze_training.h"
#include "server/statements/job_place.h"
#include "server/statements/plain_statement.h"
#include "server/statements/plan_rows.h"
#include "server/statements/session.h"
#include "server/statements/statement_scope.h"
#include "server/statements/statement_use.h"

namespace sluice::server {
namespace {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

template <typename Variant>
Span SpanOf(const Variant& statement) {
  return std::visit([](const auto& any) { return any.span; }, statement);
}

std::string_view TextOf(const parser::Statement& statement, std::string_view script) {
  const Span span = SpanOf(statement);
  if (!span.valid()) {
    return script;
  }
  return script.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
}

// Whether a select writes, by a sequence or by locking the rows that it reads: SQLSTATE 25006,
// since statements read in read-only transactions.
bool WritesWhileReading(const Diagnostic& diagnostic) {
  constexpr std::string_view kBegin = "cannot execute ";
  const std::string_view message = diagnostic.message;
  return diagnostic.sqlstate == "25006" && diagnostic.hint.empty() && message.starts_with(kBegin) &&
         (message.find("()") != std::string_view::npos ||
          message.substr(kBegin.size()).starts_with("SELECT FOR "));
}
constexpr const char* kReadInstead =
    "the rows of a statement are read in read-only transactions, and may be read again: CREATE "
    "TABLE name AS the select first, and read that table here";

// The statement's select; the statement itself if it has none.
parser::Select SelectOf(const parser::ExtendedStatement& statement) {
  return std::visit(
      [](const auto& any) {
        if constexpr (requires { any.select; }) {
          return any.select;
        } else {
          return parser::Select{{}, any.span};
        }
      },
      statement);
}

// An error in the rows themselves, such as a division by zero, has no place; point to the select
// that they come from. Hints get the select's text.
Status AtSelect(const Status& status, const parser::ExtendedStatement& statement) {
  if (status.ok()) {
    return status;
  }
  const parser::Select select = SelectOf(statement);
  constexpr std::string_view kOfRows[] = {"21", "22", "38", "39", "P0"};  // classes of SQLSTATEs
  Status placed;
  for (const Diagnostic& diagnostic : status.diagnostics()) {
    const std::string_view state = diagnostic.sqlstate;
    // We use 22023 ourselves for many kinds of error.
    const bool of_rows =
        !diagnostic.span.valid() && state != "22023" &&
        std::find(std::begin(kOfRows), std::end(kOfRows), state.substr(0, 2)) != std::end(kOfRows);
    placed.Add(Status(diagnostic.code, diagnostic.message)
                   .SqlState(diagnostic.sqlstate)
                   .At(of_rows ? select.span : diagnostic.span)
                   .Detail(diagnostic.detail)
                   .Hint(WritesWhileReading(diagnostic)
                             ? kReadInstead
                             : WithSelect(diagnostic.hint, select.text)));
  }
  return placed;
}

// Whether the statement's rows are read once, for an answer to the client.
bool ReadsOnce(const parser::ExtendedStatement& statement) {
  const auto* const predict = std::get_if<parser::PredictStatement>(&statement);
  return predict != nullptr && (!predict->target || predict->target->parts.size() < 2);
}

// What to do with a plan.
using UsePlan = std::function<Status(const plan::Plan& plan, executor::Context& context)>;

// Notes what it uses, where somebody asks for that.
Status UseNoted(const plan::Plan& plan, executor::Context& context, Session& session,
                const UsePlan& use) {
  StatementUse* const noted = session.use();
  if (noted == nullptr) {
    return use(plan, context);
  }
  NoteBeginning(plan, session, noted);
  context.on_job = [noted](int64_t job) { noted->job = job; };
  context.on_snapshot = [noted](const std::string& snapshot) { noted->snapshot = snapshot; };
  Status outcome = use(plan, context);
  NoteEnd(plan, outcome.ok(), session, noted);
  return outcome;
}

enum class Purpose { kRun, kDescribe };

// Train, predict, evaluate, model report. The planner refuses what is not implemented with 0A000.
Status PlanForSession(const parser::ExtendedStatement& statement, std::string_view sql,
                      Session& session, executor::ResultSink& sink, Purpose purpose,
                      const UsePlan& use) {
  const SteadyClock clock;
  const TimePoint begin = clock.Now();
  ASSIGN_OR_RETURN(const auto scope, StatementScope::Begin(sql, SpanOf(statement), session, sink,
                                                           ReadsOnce(statement)));
  std::shared_ptr<const catalog::ModelVersion> model;
  const auto make_plan = [&](bool classes_of_sample) {
    planner::Options options = session.planner_options();
    options.classes_of_sample = classes_of_sample;
    options.on_model = [&model](catalog::ModelVersion found) {
      model = std::make_shared<const catalog::ModelVersion>(std::move(found));
    };
    return planner::MakePlan(statement, session.source(), session.catalog().models(), options);
  };
  const Result<plan::Plan> plan = make_plan(purpose == Purpose::kRun);
  if (!plan.ok()) {
    return scope->Outcome(AtSelect(plan.status(), statement));
  }
  scope->ReportNotices();
  const double planning_seconds = SecondsBetween(begin, clock.Now());
  log::Debug("planned seconds={:.6f}", planning_seconds);
  executor::Context context{session.source(),
                            session.catalog(),
                            session.user(),
                            std::string(sql),
                            scope->stop(),
                            session.cluster(),
                            [&scope](Status ended) { return scope->Outcome(std::move(ended)); }};
  context.planning_seconds = planning_seconds;
  context.scorers = session.scorers();
  context.model = model;
  if (plan->train().model().features().label().classes_of_sample()) {
    context.plan_with_all_classes = [&make_plan] { return make_plan(false); };
  }
  context.checkpoint_root = session.planner_options().checkpoint_root;
  context.acts_as_login = session.acts_as_login();
  return scope->Outcome(AtSelect(UseNoted(*plan, context, session, use), statement));
}

// SHOW, DESCRIBE, DROP, ALTER, CANCEL, WAIT: they read nothing through the session.
Status PlanAboutCatalog(const parser::ExtendedStatement& statement, std::string_view sql,
                        Session& session, const UsePlan& use) {
  const auto begun = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(session.TakeActingRoleOfSession());
  const StoppableStatement stoppable(session, begun);
  planner::Options options = session.planner_options();
  options.python.stop = stoppable.stop();
  const Result<plan::Plan> plan =
      planner::MakePlan(statement, session.source(), session.catalog().models(), options);
  if (!plan.ok()) {
    return stoppable.Outcome(plan.status());
  }
  executor::Context context{session.source(), session.catalog(), session.user(),
                            std::string(sql), stoppable.stop(),  session.cluster()};
  context.checkpoint_root = options.checkpoint_root;
  context.export_root = session.export_root();
  context.acts_as_login = session.acts_as_login();
  return stoppable.Outcome(UseNoted(*plan, context, session, use));
}

// Warns that models and their rights are neither committed nor rolled back with the client's open
// transaction.
void WarnOfTransaction(const plan::Plan& plan, Session& session, executor::ResultSink& sink) {
  const bool trains = plan.has_train();
  if (session.beside_transaction() && (trains || plan.predict().has_table())) {
    sink.Notice(fmt::format("WARNING: the {} stays, also when the transaction is rolled back",
                            trains ? "model" : "table"));
    return;
  }
  if (!session.in_database_transaction() && !session.beside_transaction()) {
    return;
  }
  if (trains) {
    sink.Notice("WARNING: the model stays, also when the transaction is rolled back");
  } else if (plan.has_drop_model() || plan.has_alter_model() || plan.has_model_grant() ||
             plan.has_create_model_type() || plan.has_import_model()) {
    const std::string_view what = plan.has_create_model_type()  ? "CREATE MODEL TYPE"
                                  : plan.has_import_model()     ? "IMPORT MODEL"
                                  : plan.has_drop_model()       ? "DROP MODEL"
                                  : plan.has_alter_model()      ? "ALTER MODEL"
                                  : plan.model_grant().revoke() ? "REVOKE ... ON MODEL"
                                                                : "GRANT ... ON MODEL";
    sink.Notice(
        fmt::format("WARNING: {} takes effect at once, and ROLLBACK does not undo it", what));
  }
}

Status RunStatement(const parser::Statement& statement, std::string_view script, Session& session,
                    executor::ResultSink& sink) {
  return std::visit(
      Overloaded{
          [&](const parser::PlainStatement& plain) { return RunPlain(plain, session, sink); },
          [&](const parser::ExplainPlanStatement& explain) -> Status {
            const std::string_view sql = TextOf(statement, script);
            if (!explain.analyze) {
              return ExplainPlan(explain, sql, session, sink);
            }
            RETURN_IF_ERROR(CheckAnalyzable(explain));
            const UsePlan run = [&](const plan::Plan& plan, executor::Context& context) {
              WarnOfTransaction(plan, session, sink);
              return AnalyzeTraining(explain, plan, context, session, sink);
            };
            return PlanForSession(explain.statement, sql, session, sink, Purpose::kRun, run);
          },
          [&](const parser::SetStatement& set) {
            RETURN_IF_ERROR(session.Set(set.name, set.value));
            sink.Done(set.reset ? "RESET" : "SET");
            return OkStatus();
          },
          [&]<typename Planned>(const Planned& planned) {
            const UsePlan run = [&](const plan::Plan& plan, executor::Context& context) {
              WarnOfTransaction(plan, session, sink);
              return RunJob(plan, context, session, sink);
            };
            const std::string_view sql = TextOf(statement, script);
            return parser::kAboutCatalog<Planned>
                       ? PlanAboutCatalog(planned, sql, session, run)
                       : PlanForSession(planned, sql, session, sink, Purpose::kRun, run);
          },
      },
      statement);
}

}  // namespace

Result<Schema> DescribeScript(std::string_view script, Session& session) {
  ASSIGN_OR_RETURN(const std::vector<parser::Statement> statements, parser::Parse(script));
  Schema schema;
  executor::ResultSink nobody;  // the statement is only described
  for (const parser::Statement& statement : statements) {
    const std::string_view sql = TextOf(statement, script);
    const UsePlan describe = [&schema, &session](const plan::Plan& plan,
                                                 executor::Context& context) -> Status {
      if (AnswersWithJob(plan, session)) {
        schema = executor::StartedJobColumns();
        return OkStatus();
      }
      ASSIGN_OR_RETURN(schema, executor::DescribeResult(plan, context));
      return OkStatus();
    };
    RETURN_IF_ERROR(
        std::visit(Overloaded{[](const parser::PlainStatement& /*plain*/) { return OkStatus(); },
                              [](const parser::SetStatement& /*set*/) { return OkStatus(); },
                              [&schema](const parser::ExplainPlanStatement& explain) {
                                schema = ExplainResult(explain);
                                return OkStatus();
                              },
                              [&]<typename Planned>(const Planned& planned) {
                                return parser::kAboutCatalog<Planned>
                                           ? PlanAboutCatalog(planned, sql, session, describe)
                                           : PlanForSession(planned, sql, session, nobody,
                                                            Purpose::kDescribe, describe);
                              }},
                   statement));
  }
  return schema;
}

Status RunScript(std::string_view script, Session& session, executor::ResultSink& sink,
                 const StatementObserver& observer) {
  const SteadyClock clock;
  ASSIGN_OR_RETURN(const std::vector<parser::Statement> statements, parser::Parse(script));
  for (const parser::Statement& statement : statements) {
    if (session.stop().stop_requested()) {
      return Cancelled("cancelled before the statement began");
    }
    const TimePoint begin = clock.Now();
    if (observer.starts) {
      RETURN_IF_ERROR(observer.starts(statement));
    }
    const Status outcome = RunStatement(statement, script, session, sink);
    if (observer.ends) {
      observer.ends(TextOf(statement, script), SecondsBetween(begin, clock.Now()), outcome);
    }
    RETURN_IF_ERROR(outcome);
  }
  return OkStatus();
}

}  // namespace sluice::server
