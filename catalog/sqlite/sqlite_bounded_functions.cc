#include "catalog/sqlite/sqlite_bounded_functions_internal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "catalog/sqlite/sqlite_functions_internal.h"

namespace sluice::catalog {
namespace {

constexpr int kMostOfPattern = 1'000;
// Comparisons of keys that json_patch may take, about a second.
constexpr double kMostComparisons = 1e9;
constexpr double kMostFilled = 1e7;   // characters, a tenth of a second
constexpr double kBytesOfMember = 5;  // {"":1,"":1}

bool IsContinuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

std::string_view BytesOf(sqlite3_value* value) {
  const auto* bytes = static_cast<const char*>(sqlite3_value_blob(value));
  return bytes == nullptr
             ? std::string_view()
             : std::string_view(bytes, static_cast<size_t>(sqlite3_value_bytes(value)));
}

// Linear, unlike std::string_view's.
size_t Find(std::string_view text, std::string_view part, size_t from = 0) {
  if (part.size() == 1) {
    return text.find(part.front(), from);
  }
  if (text.size() - from < part.size()) {  // memmem takes no null
    return std::string_view::npos;
  }
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

bool AnyIsNull(int count, sqlite3_value** arguments) {
  return std::any_of(arguments, arguments + count, IsNullValue);
}

// instr(text, part): where the part begins, counted in characters from 1; 0: nowhere. Of two blobs,
// in bytes.
void Instr(sqlite3_context* context, int count, sqlite3_value** arguments) {
  if (AnyIsNull(count, arguments)) {
    return;
  }
  const bool blobs = sqlite3_value_type(arguments[0]) == SQLITE_BLOB &&
                     sqlite3_value_type(arguments[1]) == SQLITE_BLOB;
  const std::string_view text = blobs ? BytesOf(arguments[0]) : TextOf(arguments[0]);
  const std::string_view part = blobs ? BytesOf(arguments[1]) : TextOf(arguments[1]);
  size_t at = 0;
  if (!part.empty()) {
    // What begins inside a character can stand at the beginning only.
    const bool inside = !blobs && IsContinuation(part.front());
    at = inside ? (text.starts_with(part) ? 0 : std::string_view::npos) : Find(text, part);
  }
  if (at == std::string_view::npos) {
    sqlite3_result_int(context, 0);
    return;
  }
  const std::string_view before = text.substr(0, at);
  const auto insides =
      blobs || at == 0 ? 0 : std::count_if(before.begin() + 1, before.end(), IsContinuation);
  sqlite3_result_int64(context, static_cast<int64_t>(at) - insides + 1);
}

// replace(text, part, by)
void Replace(sqlite3_context* context, int count, sqlite3_value** arguments) {
  if (AnyIsNull(count - 1, arguments)) {
    return;
  }
  const std::string_view text = TextOf(arguments[0]);
  const std::string_view part = TextOf(arguments[1]);
  if (part.empty() || part.front() == '\0') {
    sqlite3_result_value(context, arguments[0]);
    return;
  }
  if (IsNullValue(arguments[2])) {
    return;
  }
  const std::string_view by = TextOf(arguments[2]);
  size_t found = 0;
  for (size_t at = 0; (at = Find(text, part, at)) != std::string_view::npos; at += part.size()) {
    ++found;
  }
  const auto most = static_cast<size_t>(
      sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1));
  const size_t kept = text.size() - found * part.size();
  if (kept > most || (!by.empty() && found > (most - kept) / by.size())) {
    sqlite3_result_error_toobig(context);
    return;
  }
  const size_t size = kept + found * by.size();
  auto* const made = static_cast<char*>(sqlite3_malloc64(size + 1));
  if (made == nullptr) {
    sqlite3_result_error_nomem(context);
    return;
  }
  char* end = made;
  size_t at = 0;
  for (; found > 0; --found) {
    const size_t next = Find(text, part, at);
    end = std::copy(text.begin() + at, text.begin() + next, end);
    end = std::copy(by.begin(), by.end(), end);
    at = next + part.size();
  }
  std::copy(text.begin() + at, text.end(), end);
  sqlite3_result_text64(context, made, size, sqlite3_free, SQLITE_UTF8);
}

// The characters that are to be trimmed.
class Trimmed {
 public:
  // Those before the first NUL.
  explicit Trimmed(std::string_view characters) {
    characters = characters.substr(0, characters.find('\0'));
    for (size_t at = 0; at < characters.size();) {
      size_t end = at + 1;
      if (static_cast<unsigned char>(characters[at]) >= 0xC0U) {
        while (end < characters.size() && IsContinuation(characters[end])) {
          ++end;
        }
      }
      if (end - at == 1) {
        bytes_[static_cast<unsigned char>(characters[at])] = true;
      } else if (end - at <= kMostOfCharacter) {  // no character is longer
        characters_.insert(characters.substr(at, end - at));
      }
      at = end;
    }
  }

  // How many bytes of one of them `text` begins, or ends, with.
  size_t AtBegin(std::string_view text) const {
    return Length(text, [](std::string_view of, size_t size) { return of.substr(0, size); });
  }
  size_t AtEnd(std::string_view text) const {
    return Length(text,
                  [](std::string_view of, size_t size) { return of.substr(of.size() - size); });
  }

 private:
  static constexpr size_t kMostOfCharacter = 4;

  template <typename Cut>
  size_t Length(std::string_view text, Cut cut) const {
    if (!text.empty() && bytes_[static_cast<unsigned char>(cut(text, 1).front())]) {
      return 1;
    }
    for (size_t size = 2; size <= std::min(kMostOfCharacter, text.size()); ++size) {
      if (characters_.contains(cut(text, size))) {
        return size;
      }
    }
    return 0;
  }

  std::array<bool, 256> bytes_{};
  std::unordered_set<std::string_view> characters_;  // longer ones
};

constexpr unsigned kLeft = 1;
constexpr unsigned kRight = 2;
constexpr unsigned kBoth = kLeft | kRight;

// trim(text), trim(text, characters)
void Trim(sqlite3_context* context, int count, sqlite3_value** arguments) {
  if (AnyIsNull(count, arguments)) {
    return;
  }
  const unsigned sides = *static_cast<const unsigned*>(sqlite3_user_data(context));
  const Trimmed trimmed(count == 1 ? " " : TextOf(arguments[1]));
  std::string_view text = TextOf(arguments[0]);
  size_t length = 0;
  while ((sides & kLeft) != 0 && (length = trimmed.AtBegin(text)) > 0) {
    text.remove_prefix(length);
  }
  while ((sides & kRight) != 0 && (length = trimmed.AtEnd(text)) > 0) {
    text.remove_suffix(length);
  }
  Answer(context, text.data() == nullptr ? "" : text);
}

// Why SQLite's function would take too long with these arguments; null: it would not.
using TooLong = const char* (*)(int count, sqlite3_value** arguments);

// SQLite's own function, which a connection that it was replaced on cannot call any more.
class Checked {
 public:
  Checked(const char* name, TooLong too_long, unsigned subtype)
      : name_(name), too_long_(too_long), subtype_(subtype) {}
  ~Checked() {
    sqlite3_finalize(call_);
    sqlite3_close_v2(own_);
  }
  Checked(const Checked&) = delete;
  Checked& operator=(const Checked&) = delete;

  static void Call(sqlite3_context* context, int count, sqlite3_value** arguments) {
    static_cast<Checked*>(sqlite3_user_data(context))->Run(context, count, arguments);
  }
  static void Free(void* checked) {
    std::default_delete<Checked>()(static_cast<Checked*>(checked));
  }

 private:
  void Run(sqlite3_context* context, int count, sqlite3_value** arguments) {
    if (const char* const why = too_long_(count, arguments)) {
      sqlite3_result_error(context, why, -1);
      return;
    }
    if (const int error = Prepare(count); error != SQLITE_OK) {
      sqlite3_result_error_code(context, error);
      return;
    }
    for (int i = 0; i < count; ++i) {
      sqlite3_bind_value(call_, i + 1, arguments[i]);
    }
    if (sqlite3_step(call_) == SQLITE_ROW) {
      sqlite3_result_value(context, sqlite3_column_value(call_, 0));
      sqlite3_result_subtype(context, subtype_);
    } else {
      sqlite3_result_error(context, sqlite3_errmsg(own_), -1);
    }
    sqlite3_reset(call_);
    sqlite3_clear_bindings(call_);
  }

  int Prepare(int count) {
    if (call_ != nullptr && sqlite3_bind_parameter_count(call_) == count) {
      return SQLITE_OK;
    }
    sqlite3_finalize(std::exchange(call_, nullptr));
    int error = SQLITE_OK;
    if (own_ == nullptr) {
      error =
          sqlite3_open_v2(":memory:", &own_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
    }
    std::string sql = std::string("SELECT ") + name_ + "(";
    for (int i = 0; i < count; ++i) {
      sql += i == 0 ? "?" : ", ?";
    }
    error = error != SQLITE_OK ? error
                               : sqlite3_prepare_v2(own_, (sql + ")").c_str(), -1, &call_, nullptr);
    if (error != SQLITE_OK) {
      sqlite3_close_v2(std::exchange(own_, nullptr));
    }
    return error;
  }

  const char* const name_;
  const TooLong too_long_;
  const unsigned subtype_;  // of its results
  sqlite3* own_ = nullptr;
  sqlite3_stmt* call_ = nullptr;
};

const char* TooLongToPatch(int count, sqlite3_value** arguments) {
  if (AnyIsNull(count, arguments)) {
    return nullptr;
  }
  const double members = static_cast<double>(TextOf(arguments[0]).size()) *
                         static_cast<double>(TextOf(arguments[1]).size()) /
                         (kBytesOfMember * kBytesOfMember);
  return members > kMostComparisons
             ? "json_patch is given texts that would take it too long: give it shorter ones"
             : nullptr;
}

// What printf(format, ...) may fill up, by widths and precisions.
class Filling {
 public:
  Filling(int count, sqlite3_value** arguments)
      : format_(count > 0 ? TextOf(arguments[0]) : std::string_view()),
        arguments_(arguments),
        count_(count) {}

  double Sum() {
    double sum = 0;
    while (at_ < format_.size()) {
      if (format_[at_++] != '%') {
        continue;
      }
      Skip("-+ #0!,");
      sum += Number();
      if (at_ < format_.size() && format_[at_] == '.') {
        ++at_;
        sum += Number();
      }
      Skip("l");
      if (at_ < format_.size()) {
        const char conversion = format_[at_++];
        next_ += conversion == '%' || conversion == 'n' ? 0 : 1;
      }
    }
    return sum;
  }

 private:
  void Skip(std::string_view characters) {
    while (at_ < format_.size() && characters.find(format_[at_]) != std::string_view::npos) {
      ++at_;
    }
  }
  double Number() {
    if (at_ < format_.size() && format_[at_] == '*') {
      ++at_;
      const int taken = next_++;
      return taken < count_ ? std::abs(static_cast<double>(sqlite3_value_int64(arguments_[taken])))
                            : 0;
    }
    double number = 0;
    for (; at_ < format_.size() && format_[at_] >= '0' && format_[at_] <= '9'; ++at_) {
      number = 10 * number + (format_[at_] - '0');
    }
    return number;
  }

  const std::string_view format_;
  sqlite3_value** const arguments_;
  const int count_;
  size_t at_ = 0;
  int next_ = 1;  // argument
};

const char* TooLongToPrint(int count, sqlite3_value** arguments) {
  return Filling(count, arguments).Sum() > kMostFilled
             ? "printf is given widths or precisions of more than 10000000 in all"
             : nullptr;
}

}  // namespace

void BoundFunctions(sqlite3* connection) {
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  const auto add = [connection](const char* name, int count, FunctionRegistrar::Function function,
                                const unsigned* data = nullptr) {
    // Without memory SQLite's own stays, and what is asked of it next has none either.
    sqlite3_create_function_v2(connection, name, count, kFlags, const_cast<unsigned*>(data),
                               function, nullptr, nullptr, nullptr);
  };
  add("instr", 2, Instr);
  add("replace", 3, Replace);
  for (const int count : {1, 2}) {
    add("ltrim", count, Trim, &kLeft);
    add("rtrim", count, Trim, &kRight);
    add("trim", count, Trim, &kBoth);
  }
  const auto check = [connection](const char* name, int count, TooLong too_long, unsigned subtype) {
    sqlite3_create_function_v2(connection, name, count, kFlags,
                               std::make_unique<Checked>(name, too_long, subtype).release(),
                               Checked::Call, nullptr, nullptr, Checked::Free);
  };
  check("json_patch", 2, TooLongToPatch, 'J');  // JSON, to the functions that are given it
  check("printf", -1, TooLongToPrint, 0);
  check("format", -1, TooLongToPrint, 0);
  sqlite3_limit(connection, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, kMostOfPattern);
}

}  // namespace sluice::catalog
