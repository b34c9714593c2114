#include "tests/chaos/connections.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include "base/row_batch.h"

namespace sluice::chaos {
namespace {

namespace fs = std::filesystem;

// "socket:[inode]" of a process's descriptors.
std::set<std::string> SocketsOf(pid_t pid) {
  std::set<std::string> sockets;
  std::error_code error;
  for (fs::directory_iterator entry(fmt::format("/proc/{}/fd", pid), error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(entry->path(), gone);
    if (!gone && target.starts_with("socket:[")) {
      sockets.insert(target.substr(8, target.size() - 9));
    }
  }
  return sockets;
}

class Counter final : public catalog::RowReceiver {
 public:
  Status Header(const Schema&) override { return OkStatus(); }
  Status Rows(const RowBatch& batch) override {
    rows += static_cast<int>(batch.rows);
    return OkStatus();
  }
  int rows = 0;
};

}  // namespace

// Fields 2 and 10 of /proc/PID/net/tcp: "0100007F:C3A2" and the inode.
std::vector<int> PortsOf(pid_t pid) {
  const std::set<std::string> sockets = SocketsOf(pid);
  std::vector<int> ports;
  for (const char* table : {"tcp", "tcp6"}) {
    std::ifstream in(fmt::format("/proc/{}/net/{}", pid, table));
    std::string line;
    std::getline(in, line);  // the header
    while (std::getline(in, line)) {
      std::istringstream fields(line);
      std::string skipped, local, inode;
      fields >> skipped >> local;
      for (int field = 3; field < 10; ++field) {
        fields >> skipped;
      }
      fields >> inode;
      const size_t colon = local.rfind(':');
      if (colon != std::string::npos && sockets.contains(inode)) {
        ports.push_back(static_cast<int>(std::strtol(local.c_str() + colon + 1, nullptr, 16)));
      }
    }
  }
  return ports;
}

Result<int> TerminateConnections(pid_t pid, catalog::DataSource& source) {
  const std::vector<int> ports = PortsOf(pid);
  if (ports.empty()) {
    return 0;
  }
  Counter counter;
  RETURN_IF_ERROR(source
                      .Execute(fmt::format("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                           "WHERE datname = current_database() AND client_port IN "
                                           "({})",
                                           fmt::join(ports, ", ")),
                               &counter, {})
                      .status());
  return counter.rows;
}

}  // namespace sluice::chaos
