#include <algorithm>
#include <cctype>

#include "base/letter_case.h"
#include "catalog/postgres/postgres_session_internal.h"
#include "catalog/sql/sql_text.h"

// Finds the names of settings of the user's own (a.b) in statements.
namespace sluice::catalog {
namespace {

// Deep enough for a DO block that runs a DO block.
constexpr int kDeepestBody = 3;

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}

// The text between the quotes of a string token, whatever their kind.
std::string_view Unquoted(std::string_view token) {
  const size_t open = token.find('\'');
  if (open == std::string_view::npos || token.size() < open + 2 || token.front() == '$') {
    return {};
  }
  return token.substr(open + 1, token.size() - open - 2);
}

// The text between $tag$ and $tag$.
std::string_view DollarQuoted(std::string_view token) {
  const size_t open =
      token.empty() || token.front() != '$' ? std::string_view::npos : token.find('$', 1);
  if (open == std::string_view::npos || token.size() < 2 * (open + 1)) {
    return {};
  }
  return token.substr(open + 1, token.size() - 2 * (open + 1));
}

}  // namespace

bool IsDottedName(std::string_view text) {
  constexpr size_t kLongestName = 256;
  bool dotted = false;
  bool begins = true;
  if (text.size() > kLongestName) {
    return false;
  }
  for (const char c : text) {
    if (c == '.') {
      if (begins) {
        return false;
      }
      dotted = true;
      begins = true;
    } else if (!IsNameCharacter(c) || (begins && !dotted && c >= '0' && c <= '9')) {
      return false;
    } else {
      begins = false;
    }
  }
  return dotted && !begins;
}

void SettingNames::Add(std::string_view statement) {
  Add(statement, 0);
}

void SettingNames::Add(std::string_view statement, int depth) {
  // Longer ones are data.
  constexpr size_t kLongestStatement = size_t{1} << 20;
  if (statement.find('.') == std::string_view::npos || statement.size() > kLongestStatement) {
    return;
  }
  const std::vector<SqlToken> tokens = TokenizeSql(statement, Dialect::kPostgres);
  const auto text = [&](const SqlToken& token) {
    return statement.substr(token.begin, token.end - token.begin);
  };
  const std::string lower = LowerAscii(statement);
  const bool sets = lower.find("set_config") != std::string::npos;
  const auto keep = [&](std::string name, bool surely) {
    if (IsDottedName(name) && names_.size() < (surely ? kMaxNames : kMaxGuesses)) {
      names_.insert(std::move(name));
    }
  };
  for (size_t i = 0; i < tokens.size(); ++i) {
    const SqlToken& token = tokens[i];
    if (token.kind == SqlToken::Kind::kString) {
      keep(std::string(Unquoted(text(token))), sets);
      if (depth < kDeepestBody) {
        Add(DollarQuoted(text(token)), depth + 1);
      }
    } else if (token.kind == SqlToken::Kind::kWord && LowerAscii(text(token)) == "set") {
      size_t at = i + 1;
      std::string name;
      while (at < tokens.size() && (tokens[at].kind == SqlToken::Kind::kWord ||
                                    tokens[at].kind == SqlToken::Kind::kQuotedName)) {
        const std::string word = LowerAscii(text(tokens[at]));
        const bool scope = name.empty() && (word == "session" || word == "local");
        if (scope) {
          ++at;
          continue;
        }
        const bool quoted = tokens[at].kind == SqlToken::Kind::kQuotedName && word.size() >= 2;
        name += quoted ? std::string(text(tokens[at]).substr(1, word.size() - 2)) : word;
        if (++at >= tokens.size() || text(tokens[at]) != ".") {
          break;
        }
        name += '.';
        ++at;
      }
      keep(std::move(name), true);
    }
  }
}

}  // namespace sluice::catalog
