#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "executor/local/local_cluster.h"
#include "executor/pods/kubernetes_access.h"
#include "server/config/role_limits.h"

namespace sluice::server {

// How a gateway authenticates its clients.
enum class Auth {
  kPassword,  // every user logs in to the database, which checks the password
  kScram,     // the same, but the PostgreSQL door never sees a password
  kTrust,     // not at all: clients act as the gateway's own login, or as the role that they name
};

// The settings of a sluice process. Order: default < file < environment < flag.
struct Config {
  // Data source: sqlite:PATH or postgresql://user@host:port/database.
  std::string source;
  // Where `serve` listens for gRPC; port 0 takes a free one.
  std::string grpc = "127.0.0.1:50051";
  // Where it listens for PostgreSQL clients: HOST:PORT, or /FOLDER:PORT for a Unix socket; several
  // addresses are separated by commas; "": nowhere.
  std::string pg;
  // With auth scram: URL of the login that may read PostgreSQL's password verifiers; "": `source`.
  std::string verifiers;
  // Over SQLite: file with the users and their password verifiers (sluice password).
  std::string password_file;
  // Folder for the certificate that the PostgreSQL door creates for itself.
  std::string tls_folder;
  // PEM files; both or none. Without them gRPC is not encrypted.
  std::string tls_cert;
  std::string tls_key;
  // Where a gateway records who does what: a file, "syslog", or "" for its log only.
  std::string audit;
  // Where it serves GET /metrics to Prometheus; "": nowhere.
  std::string metrics;
  // How `serve` authenticates: password, scram or trust. "": over PostgreSQL, password. SQLite has
  // no users: scram if there is a password_file, else trust, for clients on this machine only.
  std::string auth;
  // Number of scripts that a gateway runs at the same time; each holds a thread and database
  // connections.
  int64_t max_statements = 32;
  // Seconds after which a gateway cuts off a client that accepts no message.
  int64_t write_timeout = 60;
  // How long a gateway keeps jobs that have ended: days or hours, as 90d and 12h; 0: always.
  std::string keep_jobs = "90d";
  int64_t keep_jobs_hours = 0;  // the same
  // Databases of the server, separated by commas, in which a gateway keeps models and jobs for
  // users that log in there, besides the source's own; "": all that are no templates.
  std::string databases;
  // What one role may take of a gateway, as "sessions=40,jobs=4"; and the same, with the limits
  // that it does not name.
  std::string role_limits;
  RoleLimits limits;
  // Limits for the workers and parameter servers of all jobs together: processors (engine.cpu of
  // each worker) and MiB (engine.memory of each process). 0: all that the machine has.
  int64_t slots = 0;
  int64_t memory_limit = 0;
  // Where jobs of many processes run. "": on this machine; "kubernetes": each process is a pod, in
  // the cluster that $KUBECONFIG names or that this process runs in.
  std::string cluster;
  // Image and namespace of those pods (namespace "": our own, or the kubeconfig's).
  std::string pods_image;
  std::string pods_namespace;
  // File with a core/v1 PodTemplate that the pods are created from; "": none.
  std::string pods_template;
  // PriorityClass of those pods, unless engine.priority names another one; "": the template's.
  std::string pods_priority_class;
  // What a gateway's statements may put into those pods (planner::PodsAllowed); "": nothing. A
  // shell's may put anything into them, with the rights of its user.
  std::string pods_allow;
  // Folder for the checkpoints of all trainings (engine.checkpoint_dir). "": a gateway keeps none,
  // and a shell keeps them wherever its user says.
  std::string checkpoint_root;
  // Folder for the files that a gateway's clients EXPORT and IMPORT models by; "": they cannot.
  std::string export_root;
  // Python with torch, which compiles model types that are written in it.
  std::string python = "/usr/bin/python3";
  // 1: a gateway runs it for its clients, with its own user's rights; a shell always does.
  int64_t python_models = 0;
  // Lowest level of log lines on standard error: debug, info, warn, error, off.
  std::string log_level = "warn";
  std::string log_format = "text";  // or "json"
  // A shell's user: the one it logs in to a gateway as, and that its jobs show.
  std::string user;
  // Command that shows output longer than the shell's terminal (PAGER); "": none.
  std::string pager;
  // File for the statements typed at the prompt; "" keeps none.
  std::string history_file;
};

using ConfigValues = std::vector<std::pair<std::string, std::string>>;

// `file` "": $SLUICE_CONFIG if that is set, else no file. `flags` are keys and values as on the
// command line. An unknown key or a value out of range is an error that names its place.
// SLUICE_<KEY> is the environment's spelling of a key. The key `source_file` names a file that
// holds the value of `source`.
Result<Config> LoadConfig(const std::string& file, const ConfigValues& flags);

// The data source in a file's first line.
Result<std::string> ReadSourceUrl(const std::string& path);

// The value of `auth`, or its default. 28000: everyone who can reach the gateway's address could
// use it, and trust was not asked for.
Result<Auth> AuthOf(const Config& config);
// Of a gateway that began with Auth::kTrust. 28000: there was no user then, and now there is one.
Status CheckStillTrusted(const Config& config);

// Whether only this machine can reach an address (or all of several, separated by commas):
// HOST:PORT on the loopback, or a Unix socket.
bool IsLocalAddress(std::string_view address);

// The threads that train boosted trees wait for each other many times a round. OpenMP's runtime
// lets them spin while they wait, which is expensive when other processes want the processors. It
// reads its environment when it is loaded, with libxgboost. Does nothing when the environment
// already sets how threads wait. Call before any thread exists.
void UsePassiveWaiting();

// The Kubernetes cluster that the environment names.
executor::KubernetesPlace KubernetesOfEnvironment();

// The share of the machine that jobs may use.
executor::LocalCluster::Options ClusterOptions(const Config& config);

// "key = value" lines, as LoadConfig reads them, without the secrets.
std::string PrintConfig(const Config& config);

}  // namespace sluice::server
