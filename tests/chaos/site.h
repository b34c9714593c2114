#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "server/gateway/gateway_client.h"
#include "tests/chaos/gateway_process.h"
#include "tests/chaos/schedule.h"

namespace sluice::chaos {

// A database with tables to train on, a gateway over it and a client session. For one thread,
// except where stated otherwise.
class Site {
 public:
  struct Options {
    std::string binary;
    std::string url;
    bool postgres = false;
    std::filesystem::path checkpoint_root;
    int slots = 8;
    int64_t rows = 0;           // of each table
    int64_t held_out_rows = 0;  // of each accompanying table; there is none for ids
  };
  static Result<std::unique_ptr<Site>> Make(const Options& options);

  const GatewayProcess& gateway() const { return *gateway_; }
  server::GatewayClient& client() { return *client_; }
  // The fault injector's own data source; call its Execute from one thread at a time.
  catalog::DataSource& source() { return *source_; }
  catalog::Catalog& catalog() { return *catalog_; }

  // Runs a statement and returns its answer.
  Result<RecordingSink> Ask(const std::string& sql) { return chaos::Ask(*client_, sql); }
  // "sluice_job_journal", or "sluice.job_journal" in PostgreSQL.
  std::string CatalogTable(const std::string& name) const;
  // The names of all tables, sorted.
  Result<std::vector<std::string>> Tables();

 private:
  Site() = default;
  Status MakeSample(Table table, const Options& options);
  Status MakeIds(int64_t rows);

  bool postgres_ = false;
  std::unique_ptr<catalog::DataSource> source_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<GatewayProcess> gateway_;
  std::unique_ptr<server::GatewayClient> client_;
};

std::string TextOf(const Value& value);  // "" if it is not a text

}  // namespace sluice::chaos
