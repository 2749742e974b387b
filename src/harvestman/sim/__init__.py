"""The simulated web: a whole internet on loopback, made of a few numbers, that keeps a diary of whoever visits it.

It is the test bed of the project and its offline demonstration. A crawler is judged by what the servers saw, not by
what it says of itself.

    harvestman sim --hosts 200 --pages 50 --seed 7 --profile mixed --port 8800 --dns-port 8853 --log sim.log \\
                   --seeds-out seeds.txt
    harvestman crawl --seeds seeds.txt --scope all --dns 127.0.0.1:8853 --allow 127.0.0.0/8 ...
    harvestman audit sim.log

What is there
    Hosts `h0001.test`, `h0002.test`, ... on addresses 127.x.y.z, all on one port, named by a DNS responder of its own.
    Outside the clean profile some hosts are subdomains (www.h0007.test, blog.h0007.test) and some share an address.
    Every host has M ordinary pages (real-looking text, log-normal size with a median of 30 KB, about 58 links, gzip,
    ETag, Last-Modified, 304) and, by its `Feature`, odd URLs on top: see `hosts`, `odd` and `traps`. A page links to
    its own host and, by Zipf popularity, to others, in every spelling that means the same URL (`paths.spelling`).
    Every page of every open host can be reached from the seeds through allowed pages, within a few links. Outside the
    clean profile a third of the hosts have a sitemap and a quarter a feed, in every form there is, each with pages
    (`/orphan/1`, `/news-flash/1`) that nothing else leads to; some lie about their dates.

Profiles
    clean   every host answers well; no oddities at all; for benchmarks
    mixed   some of everything the web does wrong; traps are short, so a crawl comes to its end
    wild    nothing but oddities; the traps have no end, and there are more of them; content farms, link farms

Scripted hosts (`--scripted SHARE`; none unless asked for)
    Their pages are shells of a few hundred bytes, which JavaScript fills with what the page would have had: headline,
    paragraphs, links, all from JSON on the same host. In six varieties, on any profile: see `hosts.Variety` and `apps`.
    Such a page is covered when its shell was fetched; its links lead on where its content may be asked for.

Where to look
    plan -> hosts, paths, odd, traps, listings,
            apps -> web                                  the pure model: same plan, same web, on any machine
    words, prose, themes, fragments -> pages             HTML, joined from pieces compressed once
    robots_txt, charsets, scripts, replies               what is answered to a request
    requests, connection, server, dns, loop              sockets
    log                                                  the diary and its format
    reach, connections, report, audit                    the judge
    cost                                                 what a request costs the server (CPU), measured

The judge (`audit.audit`) walks the model from the seeds along every link that may be followed and compares that with
the log: coverage, pages fetched twice, robots.txt and nofollow broken, gaps below the promised delay, Retry-After
ignored, requests that overlap, connections open at once, traps entered, resources of scripts fetched twice. Arrival
times are the kernel's, so a busy server does not blur the gaps; a millisecond is forgiven.
"""
