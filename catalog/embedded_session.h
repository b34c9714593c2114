#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/sql/declared_type.h"
#include "catalog/sql/sql_session.h"

namespace sluice::catalog {

// A cell as stored. The bytes are valid until the next Step.
struct EmbeddedCell {
  enum class Kind { kNull, kInteger, kReal, kText, kBlob };
  Kind kind = Kind::kNull;
  int64_t integer = 0;
  double real = 0;
  std::string_view bytes = {};  // kText, kBlob; for kReal: the text that the database shows
};

// A client's prepared statement. Its session must outlive it.
class EmbeddedStatement {
 public:
  struct Column {
    std::string name;
    DeclaredType type;  // for an expression, as far as it is known without running it
  };
  virtual ~EmbeddedStatement() = default;

  virtual const std::vector<Column>& columns() const = 0;  // empty: the statement returns no rows
  // The largest $n.
  virtual size_t parameters() const = 0;
  // The statement does not change the database.
  virtual bool read_only() const = 0;
  // Memory that it takes, without what is bound.
  virtual size_t bytes() const = 0;
  // `number`: from 1. Before the first Step, or after Reset.
  virtual Status Bind(size_t number, const SqlParameter& value) = 0;
  // False: no further row. 55P03: another connection holds a lock; nothing has changed, and after
  // Reset it may be retried. 40001: data that the transaction has read was changed since.
  virtual Result<bool> Step() = 0;
  virtual EmbeddedCell Cell(size_t column) const = 0;
  // Returns to the state before the first Step; parameters stay bound.
  virtual void Reset() = 0;
};

// A client's own session on an embedded database that behaves as PostgreSQL's clients expect: the
// database's own SQL, with casts (x::type) and E'...' as those clients write them, and pg_catalog
// and information_schema as far as those clients read them. It waits for no lock. Forbidden actions
// are refused (42501): other files, extensions, harmful PRAGMAs, changes of Sluice's own tables.
// Belongs to one thread at a time.
class EmbeddedSession {
 public:
  struct Options {
    std::string user;            // current_user
    std::string database;        // current_database()
    std::string version;         // version()
    std::string version_number;  // server_version
    // The other roles that may log in, for pg_roles; read when the session begins.
    std::vector<std::string> other_users = {};
  };
  virtual ~EmbeddedSession() = default;

  // One statement, of the length given by SplitStatements. Places in errors count from its
  // beginning.
  virtual Result<std::unique_ptr<EmbeddedStatement>> Prepare(std::string_view sql) = 0;
  // The types of its parameters, as far as the columns with which they are used reveal them; 0:
  // unknown.
  virtual Result<std::vector<uint32_t>> ParameterTypes(std::string_view sql, size_t count) = 0;
  // Runs a statement without rows, or whose rows do not matter.
  virtual Status Run(std::string_view sql) = 0;

  enum class Transaction { kNone, kIdle, kRead, kWrite };
  // kIdle: after BEGIN, with nothing read or written since.
  virtual Transaction transaction() const = 0;
  // Rows changed by the last INSERT, UPDATE or DELETE.
  virtual int64_t changes() const = 0;
  // A temporary table or view, named in `sql`, that a statement on another connection would not
  // see; "": none.
  virtual Result<std::string> TemporaryNameIn(std::string_view sql) = 0;

  // Gives back the memory of what can be read again.
  virtual void ReleaseCaches() = 0;

  // Ends the running statement, or else the next (57014). Callable from any thread.
  virtual void Interrupt() = 0;
  // An Interrupt from before ends nothing any more. Call it while nothing runs.
  virtual void ForgetInterrupt() = 0;
};

// Shared by all sessions of one database: the catalogs built from its schema. Thread-safe.
class SharedCatalogs;
std::shared_ptr<SharedCatalogs> MakeSharedCatalogs();

// 08001, 58P01: `url` names no database.
Result<std::unique_ptr<EmbeddedSession>> OpenEmbeddedSession(
    std::string_view url, EmbeddedSession::Options options,
    std::shared_ptr<SharedCatalogs> catalogs = MakeSharedCatalogs());

// A statement, or a select, as SQLite gets it: what PostgreSQL's clients write in their own way
// (x::type, E'...', $tag$...$tag$, ILIKE) is translated.
std::string InEmbeddedDialect(std::string_view sql);

// The statements of a script as byte ranges, without the semicolons between them. Semicolons inside
// a trigger belong to it. Empty statements are left out.
std::vector<Span> SplitEmbeddedScript(std::string_view sql);

}  // namespace sluice::catalog
