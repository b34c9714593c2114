#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

// Session statements that an embedded database itself lacks: transactions with their modes,
// settings, cursors, PREPARE, COPY. Pure; thread-safe.
namespace sluice::server::pgwire {

struct SessionStatement {
  enum class Kind {
    kBegin,
    kCommit,
    kRollback,
    kSavepoint,   // name
    kRelease,     // name
    kRollbackTo,  // name
    kSet,         // name, value
    kReset,       // name; "": all
    kShow,        // name; "": all
    kModes,       // SET TRANSACTION, SET SESSION CHARACTERISTICS: modes
    kDiscard,
    kDeallocate,  // name; "": all
    kPrepare,     // name, types, inner
    kExecute,     // name, arguments
    kDeclare,     // name, inner
    kFetch,       // name, count
    kMove,        // name, count
    kClose,       // name; "": all
    kCopyIn,
    kCopyOut,
    kListen,  // LISTEN, UNLISTEN, NOTIFY: there are no other sessions to notify
  };
  Kind kind;
  std::string tag = {};  // of CommandComplete
  std::string name = {};
  std::string value = {};
  bool local = false;                       // SET LOCAL
  bool hold = false;                        // a cursor WITH HOLD
  std::optional<bool> read_only = {};       // of modes
  bool chain = false;                       // COMMIT AND CHAIN
  int64_t count = 1;                        // of rows; negative: all
  Span inner = {};                          // place of the inner statement in the text
  std::vector<std::string> types = {};      // of a prepared statement's parameters, as written
  std::vector<std::string> arguments = {};  // expressions, as written
  std::string table = {};    // of COPY: as written in the statement, with its columns
  std::string columns = {};  // "(a, b)" or ""
  struct CopyOptions {
    bool csv = false;
    bool binary = false;
    bool header = false;
    char delimiter = '\t';
    char quote = '"';
    char escape = '"';
    std::string null = "\\N";
  };
  CopyOptions copy = {};
};

// nullopt: the statement is SQLite's own. Errors: it is one of these, but malformed (42601) or asks
// for something that is missing here (0A000).
Result<std::optional<SessionStatement>> ReadSessionStatement(std::string_view sql);

}  // namespace sluice::server::pgwire
