#include "server/gateway/gateway.h"

// Include before gRPC's headers: Abseil tolerates that the annotation macros of base/mutex.h are
// already defined, but not the reverse.
#include "server/gateway/gateway_scripts.h"

#include <fmt/core.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "base/log.h"
#include "base/machine.h"
#include "catalog/catalog.h"
#include "catalog/embedded_memory.h"
#include "elastic/transport/metrics_page.h"
#include "elastic/transport/rpc_server_internal.h"
#include "executor/jobs/lost_jobs.h"
#include "parser/parser.h"
#include "planner/compile/child_program.h"
#include "server/config/open_cluster.h"
#include "server/gateway/gateway_services_internal.h"
#include "server/gateway/readiness.h"
#include "server/gateway/wire_statements.h"
#include "server/pgwire/certificate_files.h"
#include "server/pgwire/door.h"
#include "server/pgwire/password_file.h"
#include "server/pgwire/pod_login.h"
#include "server/pgwire/statement_service.h"
#include "server/pgwire/ticket.h"
#include "server/pgwire/upstream.h"
#include "server/statements/training_job.h"
#include "server/statements/training_job_login.h"

namespace sluice::server {
namespace {

// Threads in addition to the scripts': job calls, health checks, and the threads that gRPC polls
// with. At its limit gRPC refuses calls without a message, so our own, readable refusal has to come
// first.
constexpr int kSpareThreads = 16;
// A script of parser::kMaxScriptBytes and the message around it.
constexpr int kMaxRequestBytes = static_cast<int>(parser::kMaxScriptBytes) + (1 << 20);
// For incoming requests: enough for a few scripts of the greatest length, or any number of usual
// ones.
constexpr size_t kRequestMemory = size_t{512} << 20;
// A shell that stays at its prompt for longer reconnects without the user noticing.
constexpr int kMaxIdleMs = 5 * 60'000;
// Before the login is checked; Strangers::Limits allow for it.
constexpr int kMaxUnreadBytes = 32 << 10;
constexpr unsigned kCertificateLookSeconds = 2;
// SQLite's part of the gateway's memory: a value is on its way to its client, too, as text and in
// messages.
constexpr int64_t kShareOfEmbedded = 4;
// And that of the messages that the PostgreSQL door's clients have begun to send; at least so much
// that the largest script fits twice into a role's half.
constexpr int64_t kShareOfMessages = 4;
constexpr int64_t kLeastForMessages = int64_t{4} * parser::kMaxScriptBytes;
// Time for running calls to tell their clients that they were cancelled.
constexpr std::chrono::seconds kShutdownGrace(2);
// Time for scripts to end what they have begun, and to say so.
constexpr std::chrono::seconds kScriptsGrace(5);

int64_t MemoryOf(const Config& config) {
  return config.memory_limit > 0 ? config.memory_limit << 20 : MachineMemory();
}

// The files are read again when they have changed.
Result<std::shared_ptr<grpc::ServerCredentials>> MakeCredentials(const Config& config) {
  if (config.tls_cert.empty()) {
    return grpc::InsecureServerCredentials();
  }
  RETURN_IF_ERROR(pgwire::CheckFiles(config.tls_cert, config.tls_key));
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          config.tls_key, config.tls_cert, kCertificateLookSeconds));
  options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsServerCredentials(options);
}

class GrpcGateway final : public Gateway {
 public:
  GrpcGateway(std::unique_ptr<SourcePool> sources, std::unique_ptr<executor::Cluster> cluster,
              const Config& config)
      : scripts_(std::move(sources), std::move(cluster), config),
        strangers_(Strangers::Limits()),
        gateway_service_(MakeGatewayService(scripts_, first_messages_, strangers_)),
        sqlflow_service_(MakeSqlflowService(scripts_, first_messages_, strangers_)),
        wire_statements_(MakeWireStatements(scripts_)) {}

  ~GrpcGateway() override { Shutdown(); }

  Status Listen(const Config& config) {
    ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ServerCredentials> credentials,
                     MakeCredentials(config));
    const size_t colon = config.grpc.rfind(':');
    if (colon == std::string::npos || colon + 1 == config.grpc.size()) {
      return InvalidArgument(fmt::format("grpc must be HOST:PORT, not '{}'", config.grpc));
    }
    elastic::ServerLimits limits;
    limits.name = "gateway";
    limits.max_request_bytes = kMaxRequestBytes;
    limits.memory_bytes = kRequestMemory;
    limits.max_threads = static_cast<int>(config.max_statements) +
                         static_cast<int>(GatewayScripts::kMaxWaiting) + kSpareThreads;
    limits.max_idle_ms = kMaxIdleMs;
    limits.max_unread_bytes = kMaxUnreadBytes;
    auto server = elastic::RpcServer::Start(
        config.grpc, limits, credentials,
        [this](grpc::ServerBuilder& builder) {
          builder.RegisterService(gateway_service_.get());
          builder.RegisterService(sqlflow_service_.get());
        },
        nullptr, [this](const elastic::Socket& connection) { return strangers_.Add(connection); });
    if (!server.ok()) {
      return Unavailable(
                 fmt::format("cannot listen on {}: {}", config.grpc, server.status().message()))
          .Hint("is the port taken, or the certificate not a PEM file?");
    }
    server_ = *std::move(server);
    address_ = fmt::format("{}:{}", config.grpc.substr(0, colon), server_->port());
    return OkStatus();
  }

  // A door without a certificate makes its own; where that cannot be stored, clients on this
  // machine connect without TLS.
  Status KeepOwnCertificate(const Config& config, pgwire::Door::Options* options) {
    if (!options->tls_cert.empty()) {
      return OkStatus();
    }
    const std::string& folder = config.tls_folder;
    char host[HOST_NAME_MAX + 1] = "localhost";
    gethostname(host, HOST_NAME_MAX);
    const auto certificate = pgwire::KeepCertificate(folder, host, std::time(nullptr));
    if (!certificate.ok()) {
      log::Warn("the PostgreSQL door has no TLS: {}", certificate.status().ToString());
      return IsLocalAddress(options->address)
                 ? OkStatus()
                 : certificate.status().Because("the door needs TLS, or nobody can log in");
    }
    options->tls_cert = folder + "/" + pgwire::kCertificateFile;
    options->tls_key = folder + "/" + pgwire::kKeyFile;
    ASSIGN_OR_RETURN(fingerprint_, pgwire::CertificateFingerprint(certificate->certificate));
    return OkStatus();
  }

  Status ListenForPostgres(const Config& config,
                           std::shared_ptr<const pgwire::TicketOffice> tickets) {
    if (config.pg.empty()) {
      return OkStatus();
    }
    pgwire::Door::Options options;
    options.address = config.pg;
    options.source = config.source;
    options.tls_cert = config.tls_cert;
    options.tls_key = config.tls_key;
    options.client_login = auth() == Auth::kTrust   ? pgwire::ClientLogin::kTrusted
                           : auth() == Auth::kScram ? pgwire::ClientLogin::kScram
                                                    : pgwire::ClientLogin::kPassword;
    options.verifiers = config.verifiers;
    options.password_file = config.password_file;
    options.admits = [this] { return scripts_.Admits(); };
    options.message_bytes =
        static_cast<size_t>(std::max(MemoryOf(config) / kShareOfMessages, kLeastForMessages));
    options.tickets = std::move(tickets);
    RETURN_IF_ERROR(KeepOwnCertificate(config, &options));
    ASSIGN_OR_RETURN(door_,
                     pgwire::Door::Start(options, *wire_statements_,
                                         {scripts_.sources().throttle(), scripts_.sources().roles(),
                                          scripts_.sources().audit()}));
    return OkStatus();
  }

  Status ServeMetrics(const Config& config) {
    if (config.metrics.empty()) {
      return OkStatus();
    }
    auto page = elastic::MetricsPage::Start(config.metrics, {[this] {
                                                               elastic::MetricsText text;
                                                               scripts_.AddMetrics(text);
                                                               return text.text();
                                                             },
                                                             [this] { return readiness_.last(); }});
    if (!page.ok()) {
      return page.status().Because(fmt::format("metrics cannot be served on {}", config.metrics));
    }
    metrics_ = *std::move(page);
    return OkStatus();
  }

  const std::string& address() const override { return address_; }
  std::string pg_address() const override { return door_ == nullptr ? "" : door_->address(); }
  const std::string& pg_fingerprint() const override { return fingerprint_; }
  Auth auth() const override { return scripts_.sources().auth(); }

  void Shutdown() override {
    metrics_.reset();
    scripts_.Shutdown();
    if (door_ != nullptr) {
      // First: a script whose client goes cancels its job, and one that is stopped tells its client
      // that the job goes on.
      scripts_.AwaitEnds(kScriptsGrace);
      door_->Shutdown();
    }
    if (server_ != nullptr) {
      server_->Shutdown(kShutdownGrace);
    }
    if (getpid() == 1 && !std::exchange(left_, true)) {  // of a container, which ends with it
      LeaveJobs();
    }
  }

 private:
  void LeaveJobs() {
    for (const auto& [database, catalog] : scripts_.sources().Catalogs()) {
      const Status left = executor::LeaveJobsOfThisPlace(catalog->jobs());
      if (!left.ok()) {
        log::Warn("other gateways wait for jobs of this one before they continue them: {}",
                  left.ToString());
      }
    }
  }
  // An ordinary query of the catalog, for a job that never is.
  Status CheckDatabase() const {
    const Status found = scripts_.sources().catalog().jobs().Find(0).status();
    return found.code() == Code::kNotFound ? OkStatus() : found;
  }

  GatewayScripts scripts_;
  FirstMessages first_messages_;
  Strangers strangers_;
  const std::unique_ptr<grpc::Service> gateway_service_;
  const std::unique_ptr<grpc::Service> sqlflow_service_;
  std::unique_ptr<elastic::RpcServer> server_;
  std::string address_;
  // Shutdown first ends the running scripts, which use the door.
  std::unique_ptr<pgwire::Door> door_;
  const std::unique_ptr<pgwire::StatementService> wire_statements_;
  std::string fingerprint_;
  Readiness readiness_{[this] { return CheckDatabase(); }};
  bool left_ = false;                              // LeaveJobs was called
  std::unique_ptr<elastic::MetricsPage> metrics_;  // last: it reads the two above
};

Result<PoolBounds> BoundsOf(const Config& config) {
  PoolBounds bounds{config.limits, GatewayScripts::PlacesOfRole(config.max_statements)};
  if (config.databases.empty()) {
    return bounds;
  }
  if (config.source.starts_with("sqlite:")) {
    return InvalidArgument("databases: a SQLite file is one database")
        .Hint("the databases of a PostgreSQL server can be listed");
  }
  std::stringstream list(config.databases);
  for (std::string name; std::getline(list, name, ',');) {
    bounds.databases.insert(name);
  }
  ASSIGN_OR_RETURN(const pgwire::Upstream upstream, pgwire::UpstreamOf(config.source));
  bounds.databases.insert(upstream.database);
  return bounds;
}

// Clients' Python has the rights of this process's user, as far as it is not contained.
Status CheckMayRunPython(const Config& config) {
  if (config.python_models == 0) {
    return OkStatus();
  }
  if (geteuid() == 0) {
    return FailedPrecondition("--python-models: as root, clients' Python could read every file")
        .Hint("run the gateway as a user of its own, which owns nothing else");
  }
  if (!planner::CanContainPrograms()) {
    return FailedPrecondition(
               "--python-models: the kernel allows this user no namespaces, so clients' Python "
               "would not be contained")
        .Hint(
            "allow them (sysctl user.max_user_namespaces, a container's seccomp profile), or "
            "compile the models with `sluice sql`");
  }
  return OkStatus();
}

}  // namespace

Result<std::unique_ptr<Gateway>> Gateway::Start(const Config& config) {
  RETURN_IF_ERROR(CheckMayRunPython(config));
  ASSIGN_OR_RETURN(const Auth auth, AuthOf(config));
  if (config.source.starts_with("sqlite:")) {
    catalog::LimitEmbeddedMemory(MemoryOf(config) / kShareOfEmbedded);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Audit> audit, Audit::Open(config.audit));
  ASSIGN_OR_RETURN(PoolBounds bounds, BoundsOf(config));
  ASSIGN_OR_RETURN(
      std::unique_ptr<SourcePool> sources,
      SourcePool::Open(
          config.source, auth,
          [path = config.password_file](const std::string& role, const std::string& password) {
            return pgwire::IsPassword(path, role, password);
          },
          std::move(audit), std::move(bounds)));
  ASSIGN_OR_RETURN(const planner::PodsAllowed allowed,
                   planner::PodsAllowed::Read(config.pods_allow));
  const auto tickets = std::make_shared<const pgwire::TicketOffice>();
  ASSIGN_OR_RETURN(std::unique_ptr<executor::Cluster> cluster,
                   OpenCluster(config, true, TrainingJobsOf(*sources, allowed),
                               pgwire::PodLoginsWith(config.source, tickets)));
  grpc::EnableDefaultHealthCheckService(true);
  auto gateway = std::make_unique<GrpcGateway>(std::move(sources), std::move(cluster), config);
  RETURN_IF_ERROR(gateway->Listen(config));
  RETURN_IF_ERROR(gateway->ListenForPostgres(config, tickets));
  RETURN_IF_ERROR(gateway->ServeMetrics(config));
  return std::unique_ptr<Gateway>(std::move(gateway));
}

}  // namespace sluice::server
