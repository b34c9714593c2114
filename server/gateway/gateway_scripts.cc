#include "server/gateway/gateway_scripts.h"

#include <fmt/core.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
#include "catalog/catalog.h"
#include "elastic/transport/metrics_page.h"
#include "executor/local/room_server.h"
#include "parser/parser.h"
#include "parser/splitter.h"
#include "server/gateway/audited_script.h"
#include "server/pgwire/door.h"
#include "server/pgwire/sql/router.h"
#include "server/statements/job_place.h"
#include "server/statements/prepared_statements.h"

namespace sluice::server {
namespace {

// The synchronous API reports a lost client only when asked; a cancelled statement has to end
// within a second, of which this is a fifth.
constexpr std::chrono::milliseconds kClientCheckInterval(200);

Status ApplySettings(const std::vector<std::string>& settings, Session& session) {
  for (const std::string& setting : settings) {
    ASSIGN_OR_RETURN(const std::vector<parser::Statement> statements, parser::Parse(setting));
    for (const parser::Statement& statement : statements) {
      const auto* set = std::get_if<parser::SetStatement>(&statement);
      const auto* plain = std::get_if<parser::PlainStatement>(&statement);
      if (plain != nullptr && pgwire::ReadPrepareOfOurs(plain->text).has_value()) {
        RETURN_IF_ERROR(session.prepared().Prepare(plain->text));
        continue;
      }
      if (set == nullptr) {
        return InvalidArgument(fmt::format(
            "a setting must be SET sluice.name = value or PREPARE of a statement of Sluice, not {}",
            setting));
      }
      RETURN_IF_ERROR(session.Set(set->name, set->value));
    }
  }
  return OkStatus();
}

bool IsPlain(std::string_view script) {
  const parser::SplitScript split = parser::Split(script);
  return split.error.ok() &&
         std::all_of(split.pieces.begin(), split.pieces.end(), [](const parser::Piece& piece) {
           return piece.kind == parser::Piece::Kind::kPlain;
         });
}

}  // namespace

GatewayScripts::GatewayScripts(std::unique_ptr<SourcePool> sources,
                               std::unique_ptr<executor::Cluster> cluster, const Config& config)
    : sources_(std::move(sources)),
      user_(config.user),
      encrypted_(!config.tls_cert.empty()),
      still_trusted_([config] { return CheckStillTrusted(config); }),
      checkpoint_root_(config.checkpoint_root),
      export_root_(config.export_root),
      pods_allowed_(planner::PodsAllowed::Read(config.pods_allow).value()),  // checked by Start
      python_(config.python_models != 0 ? config.python : ""),
      room_(executor::RoomNameOf(config.source)),
      cluster_(std::move(cluster)),
      max_scripts_(static_cast<size_t>(config.max_statements)),
      max_scripts_of_role_(static_cast<size_t>(PlacesOfRole(config.max_statements))),
      write_seconds_(static_cast<double>(config.write_timeout)),
      watcher_([this](const std::stop_token& end) { WatchClients(end); }),
      lost_jobs_(std::make_unique<LostJobs>(
          *sources_, [this](const Login& login, const std::stop_token& stop) {
            const std::string nothing;
            return InSession({nothing, login, login.role},
                             {[] { return false; }, stop, [](const Status& /*status*/) {}},
                             [](Session& session, SourcePool::Lease& /*source*/) {
                               return ResumeLostJobs(session);
                             });
          })) {
  housekeeper_.emplace(*sources_, std::chrono::hours(config.keep_jobs_hours));
}

GatewayScripts::~GatewayScripts() {
  Shutdown();
  housekeeper_.reset();
  lost_jobs_.reset();
}

Status GatewayScripts::Run(const Script& script, const Client& client, executor::ResultSink& sink,
                           const StatementObserver& observer) {
  const SteadyClock clock;
  AuditedScript audited(sources_->audit(), ClientOf(script), sink);
  Status status =
      InSession(script, client, [&](Session& session, SourcePool::Lease& source) -> Status {
        LoggedIn(script.login);
        const std::string counted = CountedRole(script, source);
        ASSIGN_OR_RETURN(const RoleUse::Session place, BeginSession(script, source));
        StatementObserver outer = observer;
        outer.starts = [&](const parser::Statement& statement) -> Status {
          const Span span = std::visit([](const auto& any) { return any.span; }, statement);
          const bool plain = std::holds_alternative<parser::PlainStatement>(statement);
          std::string text = script.text.substr(static_cast<size_t>(span.begin),
                                                static_cast<size_t>(span.end - span.begin));
          if (const std::string_view runs = ExecutedText(text, session); !runs.empty()) {
            text += fmt::format("\n: {}", runs);
          }
          RETURN_IF_ERROR(audited.Begins(text, plain, session));
          RETURN_IF_ERROR(sources_->roles().BeginStatement(counted, clock.Now()));
          if (plain) {
            source.MarkUsedDirectly();
          }
          return observer.starts ? observer.starts(statement) : OkStatus();
        };
        outer.ends = [&](std::string_view sql, double seconds, const Status& outcome) {
          audited.Ends(outcome);
          if (observer.ends) {
            observer.ends(sql, seconds, outcome);
          }
        };
        Status ran = RunScript(script.text, session, audited, outer);
        if (!ran.ok() && !audited.has_begun()) {  // it is no SQL
          RETURN_IF_ERROR(audited.Begins(script.text, false, session));
          audited.Ends(ran);
        }
        return ran;
      });
  audited.Over(status);
  return status;
}

Status GatewayScripts::Call(const Login& login, std::string_view statement, int64_t job,
                            const std::function<Status(catalog::Catalog& catalog)>& work) {
  const SteadyClock clock;
  ASSIGN_OR_RETURN(const SourcePool::Lease source, sources_->Acquire(login));
  ASSIGN_OR_RETURN(const auto catalog, source.ActingCatalog());
  const std::string nothing;
  const Script script{nothing, login, user_};
  const AuditedClient client = ClientOf(script);
  const TimePoint since = clock.Now();
  ASSIGN_OR_RETURN(const int64_t begun,
                   sources_->audit().Begins(client, statement, catalog::Dialect::kPostgres));
  const Status done = Guarded("a call about jobs", [&]() -> Status {
    ASSIGN_OR_RETURN(const RoleUse::Session place, BeginSession(script, source));
    RETURN_IF_ERROR(sources_->roles().BeginStatement(CountedRole(script, source), since));
    return work(*catalog);
  });
  StatementUse use;
  use.job = job;
  sources_->audit().Ends(begun, client, catalog->principal().role, done,
                         SecondsBetween(since, clock.Now()), use);
  return done;
}

AuditedClient GatewayScripts::ClientOf(const Script& script) const {
  const bool trusted = script.login.role.empty();
  return {script.door, trusted ? (script.user.empty() ? user_ : script.user) : script.login.role,
          script.address.empty() ? script.login.address : script.address, script.login.database};
}

std::string GatewayScripts::RoleOf(const Script& script) const {
  const bool at_door = script.login.role.empty() && sources_->auth() != Auth::kTrust;
  return at_door ? script.user : script.login.role;
}

std::string GatewayScripts::CountedRole(const Script& script,
                                        const SourcePool::Lease& source) const {
  return source.limited() ? RoleOf(script) : "";
}

Result<RoleUse::Session> GatewayScripts::BeginSession(const Script& script,
                                                      const SourcePool::Lease& source) {
  const bool at_door = script.door == pgwire::kDoorName;
  return sources_->roles().BeginSession(at_door ? "" : CountedRole(script, source));
}

Result<Schema> GatewayScripts::Describe(const Script& script, const Client& client) {
  Schema schema;
  const Work describe = [&](Session& session, SourcePool::Lease& source) -> Status {
    RETURN_IF_ERROR(
        sources_->roles().BeginStatement(CountedRole(script, source), SteadyClock().Now()));
    const TimePoint since = SteadyClock().Now();
    Result<Schema> described = DescribeScript(script.text, session);
    if (described.ok()) {  // what it executes next is recorded
      schema = *std::move(described);
      return OkStatus();
    }
    const AuditedClient who = ClientOf(script);
    const auto dialect = session.source().dialect() == "sqlite" ? catalog::Dialect::kSqlite
                                                                : catalog::Dialect::kPostgres;
    ASSIGN_OR_RETURN(const int64_t begun, sources_->audit().Begins(who, script.text, dialect));
    sources_->audit().Ends(begun, who, session.catalog().principal().role, described.status(),
                           SecondsBetween(since, SteadyClock().Now()), {});
    return described.status();
  };
  RETURN_IF_ERROR(InSession(script, client, describe));
  return schema;
}

Status GatewayScripts::InSession(const Script& script, const Client& client, const Work& work) {
  const Result<Place> place = Admit(script, client);
  const std::stop_callback forward(client.stop, [&place] {
    if (place.ok()) {
      place->RequestStop();
    }
  });
  Status status =
      place.ok() ? Guarded("running a script",
                           [&] { return InSessionAdmitted(script, client, place->stop(), work); })
                 : place.status();
  client.ended(status);
  return status;
}

GatewayScripts::Place::~Place() {
  if (scripts_ != nullptr) {
    const MutexLock lock(scripts_->mutex_);
    scripts_->running_.erase(at_);
    scripts_->script_left_.notify_all();
  }
}

bool GatewayScripts::IsShutDown() {
  const MutexLock lock(mutex_);
  return shut_down_;
}

Status GatewayScripts::InSessionAdmitted(const Script& script, const Client& client,
                                         const std::stop_token& stop, const Work& work) {
  ASSIGN_OR_RETURN(SourcePool::Lease source, sources_->Acquire(script.login, stop));
  const std::string& claimed = script.user.empty() ? user_ : script.user;
  const bool trusted = script.login.role.empty();
  Session session(source.source(), source.catalog(), trusted ? claimed : script.login.role,
                  cluster_.get());
  session.set_stop(stop);
  session.set_room(room_);
  session.KeepModelsIn(scorers_);
  session.set_most_jobs(max_scripts_);
  session.CountJobsFor(&sources_->roles(), CountedRole(script, source));
  session.BelongsToGateway([this, &client] { return client.is_gone() || IsShutDown(); },
                           [this] { return IsShutDown(); });
  if (trusted) {
    session.KeepCheckpointsIn(checkpoint_root_);
    session.KeepModelFilesIn(export_root_);
  } else {
    RETURN_IF_ERROR(session.KeepFilesByRole(checkpoint_root_, export_root_));
  }
  session.AllowInPods(pods_allowed_);
  if (!python_.empty()) {
    session.CompilePythonWith(python_, true);
  }
  if (script.database_session != nullptr) {
    session.set_database_session(*script.database_session, script.in_transaction);
    session.OnSettings(script.on_settings);
  }
  session.set_beside_transaction(script.beside_transaction);
  if (script.settings != nullptr) {
    RETURN_IF_ERROR(ApplySettings(*script.settings, session));
    if (script.on_settings) {
      script.on_settings(session.settings());
    }
  }
  return work(session, source);
}

void GatewayScripts::AddMetrics(elastic::MetricsText& text) {
  {
    const MutexLock lock(mutex_);
    text.Add("sluice_scripts_running", elastic::MetricsText::Kind::kGauge,
             "Scripts of clients that run now.", {}, static_cast<double>(running_.size()));
  }
  cluster_->AddMetrics(text);
}

void GatewayScripts::Shutdown() {
  std::list<Running> running;
  {
    const MutexLock lock(mutex_);
    shut_down_ = true;
    script_left_.notify_all();
    running = running_;
  }
  for (Running& script : running) {
    script.stop.request_stop();
  }
}

void GatewayScripts::AwaitEnds(std::chrono::steady_clock::duration most) {
  MutexLock lock(mutex_);
  script_left_.wait_for(lock.native(), most,
                        [this]() REQUIRES(mutex_) { return running_.empty(); });
}

bool GatewayScripts::RoleHasRoom(const std::string& role) {
  return role.empty() || static_cast<size_t>(std::count_if(running_.begin(), running_.end(),
                                                           [&](const Running& running) {
                                                             return running.role == role;
                                                           })) < max_scripts_of_role_;
}

bool GatewayScripts::HasRoom(const std::string& role) {
  const auto before = std::count_if(waiting_.begin(), waiting_.end(),
                                    [this](const Waiting& waiting)
                                        REQUIRES(mutex_) { return RoleHasRoom(waiting.role); });
  return running_.size() + static_cast<size_t>(before) < max_scripts_ && RoleHasRoom(role);
}

// The first one whose role has room: nobody waits for another role's scripts to end.
bool GatewayScripts::IsTurnOf(const Client& client) {
  const auto first = std::find_if(waiting_.begin(), waiting_.end(),
                                  [this](const Waiting& waiting)
                                      REQUIRES(mutex_) { return RoleHasRoom(waiting.role); });
  return first != waiting_.end() && first->client == &client && running_.size() < max_scripts_;
}

Status GatewayScripts::NoRoom(const std::string& role) {
  if (RoleHasRoom(role)) {
    return ResourceExhausted(
               fmt::format("the gateway already runs {} scripts, its limit", max_scripts_))
        .SqlState("53300")
        .Hint("try again later, or raise max_statements of the gateway");
  }
  return ResourceExhausted(
             fmt::format("the gateway already runs {} scripts of role {}, the limit for one role",
                         max_scripts_of_role_, role))
      .SqlState("53300")
      .Hint(fmt::format("try again later; a role may take three quarters of the gateway's {} "
                        "places (max_statements)",
                        max_scripts_));
}

Result<GatewayScripts::Place> GatewayScripts::Admit(const Script& script, const Client& client) {
  const std::string role = RoleOf(script);
  bool full = false;
  {
    const MutexLock lock(mutex_);
    full = !HasRoom(role);
  }
  if (full && IsPlain(script.text)) {
    RETURN_IF_ERROR(AwaitTurn(script, client));
  }
  const MutexLock lock(mutex_);
  const bool waited = std::erase_if(waiting_, [&](const Waiting& waiting) {
                        return waiting.client == &client;
                      }) > 0;
  if (waited) {
    script_left_.notify_all();  // it is the next one's turn
  }
  if (shut_down_) {
    return Unavailable("the gateway is shutting down");
  }
  if (!waited && !HasRoom(role)) {
    return NoRoom(role);
  }
  running_.push_front({&client, role, std::stop_source()});
  script_began_.notify_one();
  return Place(*this, running_.begin());
}

// Waits until it is the client's turn (it stays in waiting_) or the gateway ends. Refuses
// the client if too many are waiting.
Status GatewayScripts::AwaitTurn(const Script& script, const Client& client) {
  MutexLock lock(mutex_);
  if (waiting_.size() >= kMaxWaiting) {
    return OkStatus();
  }
  waiting_.push_back({&client, RoleOf(script)});
  while (!shut_down_ && !IsTurnOf(client)) {
    script_left_.wait_for(lock.native(), kClientCheckInterval);
    if (client.stop.stop_requested() || client.is_gone()) {
      std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.client == &client; });
      script_left_.notify_all();
      return Cancelled("the statement was cancelled");
    }
  }
  return OkStatus();
}

void GatewayScripts::WatchClients(const std::stop_token& end) {
  pthread_setname_np(pthread_self(), "clients");
  while (!end.stop_requested()) {
    {
      MutexLock lock(mutex_);
      script_began_.wait(lock.native(), end,
                         [this]() REQUIRES(mutex_) { return !running_.empty(); });
    }
    // Logged by the callee; the next round tries again.
    [[maybe_unused]] const Status looked =
        Guarded("looking after the clients", [this] { CancelForGoneClients(); });
    MutexLock lock(mutex_);
    script_began_.wait_for(lock.native(), end, kClientCheckInterval, [] { return false; });
  }
}

void GatewayScripts::CancelForGoneClients() {
  std::vector<std::stop_source> gone;
  {
    const MutexLock lock(mutex_);
    for (const Running& script : running_) {
      if (script.client->is_gone()) {
        gone.push_back(script.stop);
      }
    }
  }
  for (std::stop_source& stop : gone) {
    stop.request_stop();  // outside the lock: it runs the registered callbacks
  }
}

}  // namespace sluice::server
