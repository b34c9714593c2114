#pragma once

#include <sqlite3.h>

#include <string>

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

  // VACUUM attaches a file of its own, which has no name.
  void Begin(bool vacuum) {
    refusal_.clear();
    vacuum_ = vacuum;
  }
  // For the statement since Begin; "": nothing was refused.
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
  std::string refusal_;
};

}  // namespace sluice::catalog
