#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::server {

// Where the lines of an audit go. Thread-safe.
class AuditLines {
 public:
  virtual ~AuditLines() = default;
  // `line` without its line end. 58030: it could not be written.
  virtual Status Write(std::string_view line) = 0;
  // Longest line that arrives whole.
  virtual size_t most_bytes() const = 0;
};

// Appends to a file, each line by one write(), so that lines of several processes do not mix and a
// line is kept when this process is killed. Creates it with mode 0600, also again after it was
// renamed.
std::unique_ptr<AuditLines> OpenAuditFile(const std::string& path);
// syslog(3), facility authpriv, which does not report whether a line has arrived. Of one such
// object in a process.
std::unique_ptr<AuditLines> OpenAuditSyslog();

}  // namespace sluice::server
