#include "server/statements/source_pool.h"

#include <fmt/core.h>

#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "catalog/data_source.h"
#include "catalog/source_url.h"

namespace sluice::server {
namespace {

// Sources kept for the next script; more would hold database connections for nobody.
constexpr size_t kMostIdle = 8;

// Brings a source back to how it was opened. False: throw it away. SQLite has no undo for temporary
// tables, ATTACH and PRAGMA, and opening a file is cheap.
bool Reset(catalog::DataSource& source) {
  return source.dialect() != "sqlite" && source.Execute("ROLLBACK", nullptr, {}).ok() &&
         source.Execute("DISCARD ALL", nullptr, {}).ok();
}

}  // namespace

SourcePool::Lease::Lease(SourcePool* pool, std::unique_ptr<catalog::DataSource> source)
    : pool_(pool), source_(std::move(source)) {}

SourcePool::Lease::Lease(Lease&& other) noexcept
    : pool_(other.pool_), source_(std::move(other.source_)), used_directly_(other.used_directly_) {}

SourcePool::Lease::~Lease() {
  if (source_ != nullptr) {
    // It may be an exception that brought it here.
    [[maybe_unused]] const Status released = Guarded("giving a data source back", [this] {
      pool_->Release(std::move(source_), used_directly_);
    });
  }
}

Result<std::unique_ptr<SourcePool>> SourcePool::Open(const std::string& url) {
  if (url == "sqlite:" || url.rfind("sqlite::memory:", 0) == 0) {
    return InvalidArgument("a gateway cannot serve an in-memory database")
        .Hint("give a file: --source sqlite:my.db");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<catalog::DataSource> first, catalog::OpenDataSource(url));
  const Status dropped = first->DropLeftovers();  // of a gateway that was killed
  if (!dropped.ok()) {
    log::Warn("what is left of killed processes stays: {}", dropped.ToString());
  }
  std::unique_ptr<SourcePool> pool(new SourcePool(url, catalog::WithoutSecrets(first->url())));
  pool->Release(std::move(first), false);
  return pool;
}

SourcePool::SourcePool(std::string url, std::string shown_url)
    : url_(std::move(url)), shown_url_(std::move(shown_url)) {}

SourcePool::~SourcePool() = default;

Result<SourcePool::Lease> SourcePool::Acquire(const std::stop_token& stop) {
  std::unique_ptr<catalog::DataSource> source;
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      source = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (source == nullptr) {
    ASSIGN_OR_RETURN(source, catalog::OpenDataSource(url_, "", stop));
  }
  return Lease(this, std::move(source));
}

void SourcePool::Release(std::unique_ptr<catalog::DataSource> source, bool used_directly) {
  if (used_directly && !Reset(*source)) {
    log::Debug("source not reused url={}", shown_url_);
    return;
  }
  const MutexLock lock(mutex_);
  if (idle_.size() < kMostIdle) {
    idle_.push_back(std::move(source));
  }
}

}  // namespace sluice::server
