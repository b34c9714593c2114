#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "executor/local_cluster.h"
#include "executor/pods/kubernetes_access.h"

namespace sluice::server {

// Whom a gateway lets in, and as whom.
enum class Auth {
  kPassword,  // every user logs in to the database, which checks the password
  kScram,     // the same, but the PostgreSQL door never sees a password
  kTrust,     // everybody is the gateway's own login
};

// What a process of sluice is told from outside. Order: default < file < environment < flag.
struct Config {
  // Data source: sqlite:PATH or postgresql://user@host:port/database.
  std::string source;
  // Where `serve` listens for gRPC; port 0 takes a free one.
  std::string grpc = "127.0.0.1:50051";
  // Where it listens for PostgreSQL's clients: HOST:PORT, /FOLDER:PORT for a Unix socket, several
  // with commas; "": nowhere.
  std::string pg;
  // With auth scram: login that reads what PostgreSQL keeps of passwords; "": the source's own.
  std::string verifiers;
  // Folder that keeps the certificate that the PostgreSQL door makes for itself.
  std::string tls_folder;
  // PEM files; both or none. Without them gRPC is not encrypted.
  std::string tls_cert;
  std::string tls_key;
  // Where it answers Prometheus, GET /metrics; "": nowhere.
  std::string metrics;
  // Whom `serve` lets in: password, scram or trust. "": password over PostgreSQL; over SQLite,
  // which has no users, everybody of this machine.
  std::string auth;
  // Scripts that a gateway runs at the same time; each holds a thread and database connections.
  int64_t max_statements = 32;
  // Seconds that a gateway waits for a client that takes no message before it cuts it off.
  int64_t write_timeout = 60;
  // What the workers and parameter servers of all jobs may ask for together: processors
  // (engine.cpu of each worker) and MiB (engine.memory of each process). 0: what the machine has.
  int64_t slots = 0;
  int64_t memory_limit = 0;
  // Where trainings on many processes have them: "", this machine; "kubernetes": each process is a
  // pod, in the cluster that $KUBECONFIG names or this process runs in.
  std::string cluster;
  // Of those pods: their image, and their namespace ("": our own, or the kubeconfig's).
  std::string pods_image;
  std::string pods_namespace;
  // File with the template of a core/v1 PodTemplate that they are made in; "": none.
  std::string pods_template;
  // Folder that holds the checkpoints of all trainings (engine.checkpoint_dir). "": a gateway keeps
  // none, and a shell keeps them wherever its user says.
  std::string checkpoint_root;
  // Lowest level of log lines on standard error: debug, info, warn, error, off.
  std::string log_level = "warn";
  // Who a shell is: the user that it logs in to a gateway as, and that its jobs show.
  std::string user;
  // Command that shows what is longer than a shell's terminal (PAGER); "": none.
  std::string pager;
  // Statements typed at the prompt; "" keeps none.
  std::string history_file;
};

using ConfigValues = std::vector<std::pair<std::string, std::string>>;

// `file` "": no file, and then $SLUICE_CONFIG. `flags` are key and value as on the command line. An
// unknown key or a value out of range is an error that names where it stood. SLUICE_<KEY> is the
// environment's spelling of a key. The key `source_file` names a file with `source` in it.
Result<Config> LoadConfig(const std::string& file, const ConfigValues& flags);

// The data source that stands in a file's first line.
Result<std::string> ReadSourceUrl(const std::string& path);

// What `auth` says, or means where it says nothing. 28000: a gateway that everybody could use who
// reaches its address, and was not told so.
Result<Auth> AuthOf(const Config& config);

// Whether nobody but this machine's own users reaches an address (several with commas): HOST:PORT
// on the loopback, or a Unix socket.
bool IsLocalAddress(std::string_view address);

// The threads that train boosted trees wait for each other many times a round, and OpenMP's runtime
// lets them spin meanwhile, which costs most where other processes want the processors, too. It
// reads its settings when it is loaded, before main, so that the program has to begin anew with
// OMP_WAIT_POLICY=passive: once, for its child processes inherit it. Does nothing where the
// environment says how threads wait, or when it cannot be done. Before any thread.
void LetThreadsSleep(char** argv);

// Where the environment says that Kubernetes is.
executor::KubernetesPlace KubernetesOfEnvironment();

// The machine's share that its jobs may use.
executor::LocalCluster::Options ClusterOptions(const Config& config);

// "key = value" lines, as LoadConfig reads them; secrets are left out.
std::string PrintConfig(const Config& config);

}  // namespace sluice::server
