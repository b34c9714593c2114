#include "server/statements/training_job_login.h"

#include <fmt/core.h>

#include <utility>

#include "catalog/catalog.h"
#include "catalog/source_url.h"
#include "catalog/sql/sqlstate.h"
#include "executor/pods/training_job_work.h"

namespace sluice::server {
namespace {

Status NoSourceOfAJob(std::string message) {
  return Status(Code::kPermissionDenied, std::move(message)).SqlState("28000");
}

}  // namespace

Result<Login> TrainingJobLogin(const executor::TrainingJobRequest& request,
                               const std::string& own_url, const std::string& own_role) {
  const std::string& secret = request.spec.source_secret;
  ASSIGN_OR_RETURN(const catalog::SourceUrl ours, catalog::ParseSourceUrl(own_url));
  if (ours.kind != catalog::SourceUrl::Kind::kPostgres) {
    return FailedPrecondition(
        "spec.source: this gateway serves a SQLite file, which cannot be read from pods");
  }
  const Result<catalog::SourceUrl> theirs = catalog::ParseSourceUrl(request.source_url);
  if (!theirs.ok() || theirs->kind != catalog::SourceUrl::Kind::kPostgres) {
    return InvalidArgument(fmt::format(
        "spec.source: the Secret '{}' does not hold the URL of a PostgreSQL database", secret));
  }
  if (!catalog::IsSameServer(theirs->text, ours.text)) {
    return InvalidArgument(
        fmt::format("spec.source: the Secret '{}' names another server than this gateway's; host "
                    "and port are to be spelled as in its --source",
                    secret));
  }
  Login login;
  login.role = catalog::RoleIn(theirs->text);
  if (login.role.empty()) {
    return NoSourceOfAJob(fmt::format("spec.source: the Secret '{}' names no role", secret));
  }
  if (login.role == own_role) {
    return NoSourceOfAJob(
        fmt::format("spec.source: the Secret '{}' holds the gateway's own login; "
                    "a TrainingJob reads with a role of its own",
                    secret));
  }
  login.password = theirs->password;
  login.database = catalog::DatabaseIn(theirs->text);
  if (login.database == catalog::DatabaseIn(ours.text)) {
    login.database.clear();  // whose catalog the gateway has open
  }
  return login;
}

Result<SourcePool::Lease> LogInFor(const executor::TrainingJobRequest& request, SourcePool& sources,
                                   const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const Login login,
                   TrainingJobLogin(request, sources.url(), sources.catalog().principal().role));
  // The messages of the server and of libpq name the role, the database and the host.
  const std::string& secret = request.spec.source_secret;
  if (const Status own = sources.CatalogOf(login.database, stop).status(); !own.ok()) {
    return Status(own.code(),
                  fmt::format("spec.source: the gateway's own login, which keeps models and jobs, "
                              "cannot use the database that the Secret '{}' names ({})",
                              secret, own.sqlstate()))
        .SqlState(own.sqlstate());
  }
  auto lease = sources.Acquire(login, stop);
  if (lease.ok()) {
    return lease;
  }
  const Status& why = lease.status();
  const bool later = catalog::IsUnavailableForNow(why);
  return Status(why.code(),
                fmt::format("spec.source: the login in the Secret '{}' {} ({})", secret,
                            later ? "cannot be used now" : "is refused", why.sqlstate()))
      .SqlState(why.sqlstate());
}

}  // namespace sluice::server
