#include "server/gateway/training_job_login.h"

#include <fmt/core.h>

#include "catalog/source_url.h"
#include "catalog/sql/sqlstate.h"
#include "executor/pods/training_jobs.h"
#include "server/pgwire/upstream.h"

namespace sluice::server {
namespace {

Status Refused(std::string message) {
  return Status(Code::kPermissionDenied, std::move(message)).SqlState("28000");
}

}  // namespace

Result<Login> TrainingJobLogin(const executor::TrainingJobRequest& request,
                               const std::string& own) {
  const std::string& secret = request.spec.source_secret;
  ASSIGN_OR_RETURN(const catalog::SourceUrl server, catalog::ParseSourceUrl(own));
  const Result<catalog::SourceUrl> parsed = catalog::ParseSourceUrl(request.source_url);
  const bool postgres = parsed.ok() && parsed->kind == catalog::SourceUrl::Kind::kPostgres;
  if (server.kind != catalog::SourceUrl::Kind::kPostgres) {
    return FailedPrecondition(
        "spec.source: this gateway serves a SQLite file, which cannot be read from pods");
  }
  ASSIGN_OR_RETURN(const pgwire::Upstream ours, pgwire::UpstreamOf(server.text));
  const auto theirs = postgres ? pgwire::UpstreamOf(parsed->text)
                               : Result<pgwire::Upstream>(InvalidArgument("no URL"));
  if (!theirs.ok()) {
    return InvalidArgument(fmt::format(
        "spec.source: the Secret '{}' does not hold the URL of a PostgreSQL database", secret));
  }
  if (theirs->place() != ours.place() || theirs->port != ours.port) {
    return InvalidArgument(
        fmt::format("spec.source: the Secret '{}' names another server than this gateway's; host "
                    "and port are to be spelled as in its --source",
                    secret));
  }
  // `user` may also be a setting of the URL; the environment's user is the gateway's, too.
  const std::string role = catalog::RoleIn(parsed->text);
  if (role.empty()) {
    return Refused(fmt::format("spec.source: the Secret '{}' names no role", secret));
  }
  if (role == ours.user) {
    return Refused(
        fmt::format("spec.source: the Secret '{}' holds the gateway's own login; a "
                    "TrainingJob reads with a role of its own",
                    secret));
  }
  Login login;
  login.role = role;
  login.password = parsed->password;
  login.database = theirs->database == ours.database ? "" : theirs->database;
  return login;
}

Result<SourcePool::Lease> LogInFor(const executor::TrainingJobRequest& request,
                                   const std::string& own, SourcePool& sources) {
  ASSIGN_OR_RETURN(const Login login, TrainingJobLogin(request, own));
  auto lease = sources.Acquire(login);
  if (lease.ok()) {
    return lease;
  }
  // The messages of the server and of libpq name the role, the database and the host.
  const Status& why = lease.status();
  const bool later = catalog::IsUnavailableForNow(why);
  return Status(why.code(),
                fmt::format("spec.source: the login in the Secret '{}' {} ({})",
                            request.spec.source_secret, later ? "cannot be used now" : "is refused",
                            why.sqlstate()))
      .SqlState(why.sqlstate());
}

}  // namespace sluice::server
