#pragma once

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace sluice::catalog {
class DataSource;
}

namespace sluice::server {

// Data sources of one URL for the scripts of a gateway. A data source has one session connection
// (for BEGIN ... COMMIT), so two scripts never share one; those that are idle are kept, because a
// connection costs milliseconds. Thread-safe.
class SourcePool {
 public:
  // A script's data source; goes back to the pool when destroyed.
  class Lease {
   public:
    Lease(SourcePool* pool, std::unique_ptr<catalog::DataSource> source);
    ~Lease();
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;
    catalog::DataSource& operator*() const { return *source_; }
    catalog::DataSource* operator->() const { return source_.get(); }
    // The script may have left an open transaction or session settings behind: they are taken back
    // before anyone else gets the source.
    void MarkUsedDirectly() { used_directly_ = true; }

   private:
    SourcePool* pool_;
    std::unique_ptr<catalog::DataSource> source_;
    bool used_directly_ = false;
  };

  // Opens the first source, so that a wrong URL is told at start.
  static Result<std::unique_ptr<SourcePool>> Open(const std::string& url);
  ~SourcePool();

  // `url` as the user gave it, without the password.
  const std::string& url() const { return shown_url_; }
  // `stop` ends the waiting for a server (57014).
  Result<Lease> Acquire(const std::stop_token& stop = {});

 private:
  SourcePool(std::string url, std::string shown_url);
  void Release(std::unique_ptr<catalog::DataSource> source, bool used_directly);

  const std::string url_;
  const std::string shown_url_;
  Mutex mutex_;
  std::vector<std::unique_ptr<catalog::DataSource>> idle_ GUARDED_BY(mutex_);
};

}  // namespace sluice::server
