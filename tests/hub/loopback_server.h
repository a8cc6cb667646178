#pragma once
// An HTTP server on loopback that sends the answers of a test, byte for byte. One thread per
// connection; it ends, with all of its threads, when it goes out of scope.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace twinkle::test {

struct Received {
    std::string method, target;
    std::map<std::string, std::string> headers;  // names in lower case
};

struct Answer {
    std::string bytes;   // on the wire
    bool close = false;  // the connection afterwards
    bool stall = false;  // afterwards, until the server ends or the client leaves
    std::chrono::milliseconds before{0};
    std::vector<std::string> drip{};  // then one every 0.2 s, and nothing more
};

inline Answer answer(int status, std::string body,
                     const std::vector<std::pair<std::string, std::string>>& headers = {}) {
    std::string text = "HTTP/1.1 " + std::to_string(status) + " Whatever\r\n";
    for (const auto& [name, value] : headers) {
        text += name + ": " + value + "\r\n";
    }
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    return {.bytes = std::move(text)};
}

class LoopbackServer {
public:
    using Handler = std::function<Answer(const Received&)>;

    explicit LoopbackServer(Handler handler) : handler_(std::move(handler)) {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
            ::listen(listener_, 128) != 0 ||
            ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
            throw std::runtime_error("no loopback");
        }
        port_ = ntohs(address.sin_port);
        acceptor_ = std::thread([this] { accept_all(); });
    }
    ~LoopbackServer() {
        ended_ = true;
        acceptor_.join();
        for (std::thread& thread : connections_) {
            thread.join();
        }
        ::close(listener_);
    }
    LoopbackServer(const LoopbackServer&) = delete;
    LoopbackServer& operator=(const LoopbackServer&) = delete;

    int port() const { return port_; }
    std::string origin() const { return "http://127.0.0.1:" + std::to_string(port_); }
    std::vector<Received> requests() const {
        const std::lock_guard lock(mutex_);
        return requests_;
    }
    int connections() const { return accepted_; }

private:
    void accept_all() {
        while (wait_for(listener_)) {
            const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (client >= 0) {
                ++accepted_;
                connections_.emplace_back([this, client] {
                    serve(client);
                    ::close(client);
                });
            }
        }
    }

    // Waits until there is something to read. False: the server ends.
    bool wait_for(int fd) const {
        while (!ended_) {
            pollfd entry{fd, POLLIN, 0};
            if (::poll(&entry, 1, 10) > 0) {
                return true;
            }
        }
        return false;
    }

    void serve(int client) {
        std::string buffer;
        char chunk[4096];
        while (wait_for(client)) {
            const auto got = ::recv(client, chunk, sizeof(chunk), 0);
            if (got <= 0) {
                return;
            }
            buffer.append(chunk, static_cast<std::size_t>(got));
            for (auto end = buffer.find("\r\n\r\n"); end != std::string::npos;
                 end = buffer.find("\r\n\r\n")) {
                const Received received = parse(buffer.substr(0, end + 2));
                buffer.erase(0, end + 4);
                if (!reply(client, received)) {
                    return;
                }
            }
        }
    }

    bool reply(int client, const Received& received) {
        {
            const std::lock_guard lock(mutex_);
            requests_.push_back(received);
        }
        const Answer answer = handler_(received);
        std::this_thread::sleep_for(answer.before);
        if (!send_all(client, answer.bytes)) {
            return false;
        }
        for (const std::string& piece : answer.drip) {
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            if (ended_ || !send_all(client, piece)) {
                return false;
            }
        }
        if (answer.stall || !answer.drip.empty()) {
            wait_for(client);
        }
        return !answer.close && !answer.stall && answer.drip.empty();
    }

    static bool send_all(int client, std::string_view left) {
        while (!left.empty()) {
            const auto sent = ::send(client, left.data(), left.size(), MSG_NOSIGNAL);
            if (sent <= 0) {
                return false;
            }
            left.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }

    static Received parse(const std::string& head) {
        Received received;
        const auto line_end = head.find("\r\n");
        const auto first = head.find(' ');
        const auto second = head.find(' ', first + 1);
        received.method = head.substr(0, first);
        received.target = head.substr(first + 1, second - first - 1);
        for (auto at = line_end + 2; at < head.size();) {
            const auto end = head.find("\r\n", at);
            const auto colon = head.find(':', at);
            std::string name = head.substr(at, colon - at);
            std::transform(name.begin(), name.end(), name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
            received.headers[name] = head.substr(colon + 2, end - colon - 2);
            at = end + 2;
        }
        return received;
    }

    Handler handler_;
    int listener_ = -1;
    int port_ = 0;
    std::atomic<bool> ended_{false};
    std::atomic<int> accepted_{0};
    mutable std::mutex mutex_;
    std::vector<Received> requests_;
    std::vector<std::thread> connections_;
    std::thread acceptor_;
};

}  // namespace twinkle::test
