#pragma once

#include <sqlite3.h>

#include <string>
#include <string_view>

namespace sluice::catalog {

// Forbids actions to a client's session; SQLite asks it, while preparing a statement, for
// everything that the statement would touch: other files, extensions, harmful PRAGMAs, changes of
// Sluice's own tables and of the catalogs made for PostgreSQL's clients. Belongs to the
// connection's thread; must outlive the statements that the connection prepares.
class SqliteGuard {
 public:
  explicit SqliteGuard(sqlite3* connection);
  SqliteGuard(const SqliteGuard&) = delete;
  SqliteGuard& operator=(const SqliteGuard&) = delete;

  // While one exists, our own statements may run.
  class Open {
   public:
    explicit Open(SqliteGuard& guard) : guard_(guard) { ++guard_.open_; }
    ~Open() { --guard_.open_; }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    SqliteGuard& guard_;
  };

  // Prepared statements are checked again before they run.
  void Renew();

  // Before a statement is prepared.
  void Begin(std::string_view sql);
  // Before it runs. VACUUM attaches a file of its own, which has no name.
  void BeginStep(bool vacuum) {
    refusal_.clear();
    made_.clear();
    remakes_ = false;
    vacuum_ = vacuum;
  }
  bool vacuum() const { return vacuum_; }  // what has begun
  // Of the statement since then; "": nothing was refused.
  const std::string& refusal() const { return refusal_; }

 private:
  static int Ask(void* self, int action, const char* first, const char* second, const char* schema,
                 const char* trigger);
  int Refuse(std::string why);
  int AskFor(int action, const std::string& first, const std::string& second,
             const std::string& schema);

  sqlite3* const connection_;
  int open_ = 0;
  bool vacuum_ = false;
  bool remakes_ = false;  // the statement drops or alters a table
  std::string made_;      // the Sluice table that a trigger names or a RENAME would make; "": none
  std::string refusal_;
};

}  // namespace sluice::catalog
