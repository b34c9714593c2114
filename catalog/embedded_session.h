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

// A cell as it is stored. The bytes are valid until the next Step.
struct EmbeddedCell {
  enum class Kind { kNull, kInteger, kReal, kText, kBlob };
  Kind kind = Kind::kNull;
  int64_t integer = 0;
  double real = 0;
  std::string_view bytes = {};  // kText, kBlob; of kReal: as the database shows it
};

// A statement of a client's, prepared. Outlived by its session.
class EmbeddedStatement {
 public:
  struct Column {
    std::string name;
    DeclaredType type;  // of an expression as far as that is known without running it
  };
  virtual ~EmbeddedStatement() = default;

  virtual const std::vector<Column>& columns() const = 0;  // none: it answers without rows
  // The largest $n.
  virtual size_t parameters() const = 0;
  // It changes nothing in the database.
  virtual bool read_only() const = 0;
  // `number`: from 1. Before the first Step, or after Reset.
  virtual Status Bind(size_t number, const SqlParameter& value) = 0;
  // False: there is no further row. 55P03: somebody else holds a lock; nothing has changed, and
  // after Reset it may be tried again. 40001: what the transaction has read was changed meanwhile.
  virtual Result<bool> Step() = 0;
  virtual EmbeddedCell Cell(size_t column) const = 0;
  // Back to before the first Step; what is bound stays.
  virtual void Reset() = 0;
};

// A client's own session on an embedded database, as PostgreSQL's clients expect one: the
// database's own SQL, with casts (x::type) and E'...' as those clients write them, and pg_catalog
// and information_schema as far as those clients read them. It waits for no lock. What it must not
// do is refused (42501): other files, extensions, PRAGMAs that harm, changes of Sluice's own
// tables. Belongs to one thread at a time.
class EmbeddedSession {
 public:
  struct Options {
    std::string user;            // current_user
    std::string database;        // current_database()
    std::string version;         // version()
    std::string version_number;  // server_version
    // Who may log in besides, for pg_roles; read when the session begins.
    std::vector<std::string> other_users = {};
  };
  virtual ~EmbeddedSession() = default;

  // One statement, of the length that SplitStatements has given it. Places in errors count from its
  // beginning.
  virtual Result<std::unique_ptr<EmbeddedStatement>> Prepare(std::string_view sql) = 0;
  // The types of its parameters, as far as the columns that they meet tell; 0: they do not.
  virtual Result<std::vector<uint32_t>> ParameterTypes(std::string_view sql, size_t count) = 0;
  // Runs a statement without rows, or whose rows do not matter.
  virtual Status Run(std::string_view sql) = 0;

  enum class Transaction { kNone, kIdle, kRead, kWrite };
  // kIdle: BEGIN, and nothing read or written since.
  virtual Transaction transaction() const = 0;
  // Rows that the last INSERT, UPDATE or DELETE has changed.
  virtual int64_t changes() const = 0;
  // A temporary table or view that a statement of another connection would not see, and whose name
  // stands in `sql`; "": none.
  virtual Result<std::string> TemporaryNameIn(std::string_view sql) = 0;

  // Ends what runs (57014). Of any thread.
  virtual void Interrupt() = 0;
};

// What the sessions of one database share: the catalogs that are made of its schema. Thread-safe.
class SharedCatalogs;
std::shared_ptr<SharedCatalogs> MakeSharedCatalogs();

// 08001, 58P01: `url` leads to no database.
Result<std::unique_ptr<EmbeddedSession>> OpenEmbeddedSession(
    std::string_view url, EmbeddedSession::Options options,
    std::shared_ptr<SharedCatalogs> catalogs = MakeSharedCatalogs());

// The statements of a script, without the semicolons between them: byte ranges. A trigger's
// semicolons are its own. Empty statements are left out.
std::vector<Span> SplitEmbeddedScript(std::string_view sql);

}  // namespace sluice::catalog
