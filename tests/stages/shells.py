"""Pages in the style of what frameworks, small sites and gatekeepers send: written for these tests, not copied."""

from __future__ import annotations

PROSE = "The river rose by two metres in the night, and the bridges of the town were closed before the morning came. "
MENU = "".join(f'<li><a href="/part/{number}">Part {number}</a></li>' for number in range(24))


def page(head: str, body: str, attributes: str = "") -> bytes:
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    return (
        f'<!DOCTYPE html>\n<html lang="en"{attributes}>\n<head>{meta}{head}</head>\n<body>{body}</body></html>'.encode()
    )


STATE = "{" + ",".join(f'"key{number}":"value of {number}"' for number in range(400)) + "}"

SHELLS: dict[str, bytes] = {
    "create-react-app": page(
        '<title>Harbour</title><link href="/static/css/main.3f1c.css" rel="stylesheet">'
        '<script defer="defer" src="/static/js/main.77aa01.js"></script>',
        '<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div>',
    ),
    "vite": page(
        '<title>Harbour</title><script type="module" crossorigin src="/assets/index-D3adB33f.js"></script>'
        '<link rel="stylesheet" href="/assets/index-c0ffee.css">',
        '<div id="app"></div>',
    ),
    "react with a spinner": page(
        "<title>Orders</title><style>.spin{animation:a 1s infinite}</style>",
        '<div id="root"><div class="splash"><div class="spin"></div><p>Loading your orders…</p></div></div>'
        '<script src="/build/bundle.8c1.js"></script>',
    ),
    "next, client only": page(
        '<title>Board</title><script src="/_next/static/chunks/webpack-12.js" defer=""></script>'
        '<script src="/_next/static/chunks/main-34.js" defer=""></script>',
        '<div id="__next"></div><script id="__NEXT_DATA__" type="application/json">'
        '{"props":{"pageProps":{}},"page":"/board","query":{},"buildId":"x1","nextExport":true}</script>',
    ),
    "next, app router": page(
        '<title>Board</title><script src="/_next/static/chunks/webpack-9.js" async=""></script>',
        '<div hidden=""><!--$--><!--/$--></div><div class="grey"><svg class="spin"></svg></div>'
        '<script>(self.__next_f=self.__next_f||[]).push([0])</script><script>self.__next_f.push([1,"1:x"])</script>',
    ),
    "nuxt, spa": page(
        "<title>Tickets</title>",
        '<div id="__nuxt"><style>.nuxt-loading{width:9px}</style><div id="nuxt-loading">Loading...</div></div>'
        "<script>window.__NUXT__={config:{},staticAssetsBase:void 0}</script>"
        '<script src="/_nuxt/runtime.1.js"></script><script src="/_nuxt/app.2.js"></script>',
    ),
    "nuxt 3, no server": page(
        '<link rel="modulepreload" as="script" crossorigin href="/_nuxt/entry.5.js">',
        '<div id="__nuxt"></div><div id="teleports"></div><script type="application/json" id="__NUXT_DATA__">'
        '[{"serverRendered":1},false]</script><script type="module" src="/_nuxt/entry.5.js" crossorigin></script>',
    ),
    "vue-cli": page(
        '<title>shop</title><script defer="defer" src="/js/chunk-vendors.51.js"></script>'
        '<script defer="defer" src="/js/app.a0.js"></script>',
        "<noscript><strong>We're sorry but shop doesn't work properly without JavaScript enabled. Please enable it to "
        'continue.</strong></noscript><div id="app"></div>',
    ),
    "vue in a page of the server": page(
        '<title>Index</title><base href="/"><link href="/css/app.css" rel="stylesheet">',
        '<div id="app"><router-view></router-view></div><script type="text/javascript" src="js/app.js"></script>',
    ),
    "angular": page(
        '<title>Portal</title><base href="/"><link rel="stylesheet" href="styles.1f.css">',
        '<app-root></app-root><script src="runtime.7.js" type="module"></script>'
        '<script src="polyfills.8.js" type="module"></script><script src="main.9.js" type="module"></script>',
    ),
    "angular, loading": page(
        '<title>Portal</title><base href="/">',
        '<portal-root class="full">Loading…</portal-root><script src="main-QX.js" type="module"></script>',
    ),
    "angularjs": page(
        '<title ng-bind="title">App</title><script src="/bower_components/angular/angular.min.js"></script>',
        '<div ng-controller="Main"><div ng-view></div></div><script src="/scripts/app.js"></script>',
        ' ng-app="harbourApp"',
    ),
    "angularjs, braces": page(
        '<title>{{page.title}}</title><script src="/js/libs.js"></script>',
        '<div data-ui-view class="{{state}}"></div><p>{{message}}</p><script src="/js/app.js"></script>',
        ' data-ng-app="app"',
    ),
    "svelte": page(
        "<title>Svelte</title><link rel='stylesheet' href='/build/bundle.css'>"
        "<script defer src='/build/bundle.js'></script>",
        "",
    ),
    "sveltekit": page(
        '<link rel="modulepreload" href="/_app/immutable/entry/start.1.js">',
        '<div style="display: contents"><script>{__sveltekit_1a={base:""};const element=document.currentScript'
        '.parentElement;Promise.all([import("/_app/immutable/entry/start.1.js")]).then(([k])=>k.start(element))}'
        "</script></div>",
    ),
    "ember": page(
        '<title>Desk</title><meta name="desk/config/environment" content="%7B%22modulePrefix%22%3A%22desk%22%7D">'
        '<link rel="stylesheet" href="/assets/vendor-d4.css">',
        '<script src="/assets/vendor-1.js"></script><script src="/assets/desk-2.js"></script>'
        '<div id="ember-basic-dropdown-wormhole"></div>',
    ),
    "gatsby": page(
        '<meta name="generator" content="Gatsby 5"><title>Loading</title>',
        '<noscript id="gatsby-noscript">This app works best with JavaScript enabled.</noscript><div id="___gatsby">'
        '</div><script src="/webpack-runtime-1.js" async></script><script src="/app-2.js" async></script>',
    ),
    "flutter": page(
        '<base href="/"><meta name="description" content="A new app."><title>counter</title>'
        '<link rel="manifest" href="manifest.json">',
        '<script src="flutter_bootstrap.js" async></script>',
    ),
    "flutter, older": page(
        '<title>counter</title><script>var serviceWorkerVersion="1";</script><script src="flutter.js" defer></script>',
        '<script>window.addEventListener("load",function(){_flutter.loader.loadEntrypoint({})});</script>',
    ),
    "blazor": page(
        '<title>Ledger</title><base href="/"><link href="css/app.css" rel="stylesheet">',
        '<div id="app"><svg class="loading-progress"><circle r="40%"/></svg><div class="loading-text"></div></div>'
        '<div id="blazor-error-ui">An unhandled error has occurred. <a href="" class="reload">Reload</a></div>'
        '<script src="_framework/blazor.webassembly.js"></script>',
    ),
    "polymer": page(
        '<script src="/bower_components/webcomponentsjs/webcomponents-loader.js"></script>'
        '<link rel="import" href="/src/shop-app.html"><title>Shop</title>',
        "<shop-app unresolved>Shop</shop-app>",
    ),
    "lit": page('<title>Notes</title><script type="module" src="/js/notes.js"></script>', "<note-taker></note-taker>"),
    "backbone with requirejs": page(
        '<title>Todos</title><script data-main="/js/main" src="/js/vendor/require.js"></script>',
        '<div class="container"><div id="page"></div></div>',
    ),
    "docsify": page(
        "<title>Document</title>",
        '<div id="app"></div><script>window.$docsify={name:"",repo:""}</script>'
        '<script src="//cdn.jsdelivr.net/npm/docsify@4"></script>',
    ),
    "swagger ui": page(
        '<title>Swagger UI</title><link rel="stylesheet" type="text/css" href="./swagger-ui.css">',
        '<div id="swagger-ui"></div><script src="./swagger-ui-bundle.js" charset="UTF-8"></script>'
        '<script src="./swagger-initializer.js" charset="UTF-8"></script>',
    ),
    "redoc": page(
        "<title>API</title><style>body{margin:0}</style>",
        "<redoc spec-url='/openapi.json'></redoc>"
        '<script src="https://cdn.jsdelivr.net/npm/redoc@2/bundles/redoc.standalone.js"></script>',
    ),
    "forum that asks for scripts": page(
        '<title>Talk</title><script defer src="/assets/vendor.br.js"></script>',
        '<noscript data-path="/"><header><a href="/">Talk</a></header><div><h2>Oops!</h2><p>This forum needs '
        'JavaScript. Turn it on and load the page again.</p></div></noscript><section id="main"></section>'
        '<script defer src="/assets/start-discourse.br.js"></script>',
    ),
    "quasar": page('<title>Fleet</title><script src="/js/vendor.1.js"></script>', "<div id=q-app></div>"),
    "elm": page(
        '<title>Main</title><script src="/elm.js"></script>',
        '<div id="elm"></div><script>Elm.Main.init({node:document.getElementById("elm")})</script>',
    ),
    "clojurescript": page(
        "<title>Ducts</title>",
        "<noscript>Ducts is a JavaScript app. Please enable JavaScript to continue.</noscript>"
        '<div id="app"></div><script src="/js/compiled/app.js"></script>',
    ),
    "asks in German": page(
        "<title>Fahrplan</title>",
        "<noscript>Bitte aktivieren Sie JavaScript, um diese Seite zu nutzen.</noscript>"
        '<div class="wrap"></div><script src="/dist/fahrplan.js"></script>',
    ),
    "asks in Russian": page(
        "<title>Карта</title>",
        "<noscript>Для работы сайта включите JavaScript в браузере.</noscript><div></div>"
        '<script src="/dist/map.js"></script>',
    ),
    "asks in Japanese": page(
        "<title>時刻表</title>",
        '<p class="msg">このサイトを利用するにはJavaScriptを有効にしてください。</p>'
        '<script src="/dist/tt.js"></script>',
    ),
    "asks in Korean": page(
        "<title>지도</title>",
        "<noscript>자바스크립트를 활성화해 주세요.</noscript><div></div><script src='/dist/map.js'></script>",
    ),
    "asks in French": page(
        "<title>Horaires</title>",
        "<noscript><p>Veuillez activer JavaScript pour afficher cette page.</p></noscript>"
        '<div class="wrap"></div><script src="/dist/horaires.js"></script>',
    ),
    "hash-bang": page(
        '<meta name="fragment" content="!"><title>Gallery</title><script src="/lib/all.min.js"></script>',
        '<div class="stage"></div>',
    ),
    "with the state of a large store": page(
        f"<title>Store</title><script>window.__INITIAL_STATE__={STATE}</script>",
        '<div id="react-root"></div><script src="https://static.store.test/web/main.4.js"></script>',
    ),
    "menu by the server, the rest by scripts": page(
        "<title>Catalogue</title>",
        f'<header><ul>{MENU}</ul></header><main id="app"></main><footer><ul>{MENU}</ul></footer>'
        '<script src="/js/catalogue.js"></script>',
    ),
    "all of it in one inline script": page(
        "<title>Tables</title>", f'<div class="x"></div><script>var data={STATE};document.title="t";draw(data)</script>'
    ),
    "webpack, no root": page(
        "<title>Studio</title>", '<script src="/vendors~main.1.chunk.js"></script><script src="/main.2.js"></script>'
    ),
    "root with comments": page(
        "<title>Lab</title>",
        "<!-- the app -->\n<div class=\"full\"\n  id='root'\n>\n  <!-- mounted here -->\n</div>"
        '<script src="/lab.js"></script>',
    ),
    "cloudflare watches, but lets it pass": page(
        "<title>Harbour</title><script type='module' src='/assets/index-1.js'></script>",
        '<div id="root"></div><script>(function(){window.__CF$cv$params={r:"1"};var a=document.createElement("script");'
        'a.src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"})();</script>',
    ),
}
"""Each is empty until its scripts have run."""

PARAGRAPHS = f"<p>{PROSE * 3}</p>" * 4
ANALYTICS = (
    '<script async src="https://www.googletagmanager.com/gtag/js?id=G-1"></script>'
    "<script>window.dataLayer=window.dataLayer||[];function gtag(){dataLayer.push(arguments)}gtag('js',new Date());"
    "</script>"
)

COMPLETE: dict[str, bytes] = {
    "next with its text": page(
        '<title>News</title><script src="/_next/static/chunks/main-1.js" defer=""></script>',
        f'<div id="__next"><main><h1>News</h1>{PARAGRAPHS}<ul>{MENU}</ul></main></div>'
        '<script id="__NEXT_DATA__" type="application/json">{"props":{}}</script>',
    ),
    "nuxt with a short text": page(
        "<title>Opening hours</title>",
        f'<div id="__nuxt"><div><nav><ul>{MENU}</ul></nav><p>{PROSE * 4}</p></div></div>'
        '<script>window.__NUXT__={}</script><script src="/_nuxt/a.js" defer></script>',
    ),
    "react by the server, a list of links": page(
        "<title>Index</title>",
        f'<div id="root" data-reactroot=""><ul>{MENU}</ul><ul>{MENU.replace("part", "piece")}</ul></div>'
        '<script src="/static/js/main.1.js"></script>',
    ),
    "article with widgets": page(
        f"<title>Flood</title>{ANALYTICS}",
        f'<article>{PARAGRAPHS}</article><div id="comments"></div><div id="app"></div><script src="/w.js"></script>',
    ),
    "a paragraph, no scripts": page("<title>Ann</title>", '<p>I am Ann. I paint boats.</p><a href="/boats">Boats</a>'),
    "a paragraph, visitors counted": page(
        f"<title>Ann</title>{ANALYTICS}", '<p>I am Ann. I paint boats.</p><p><a href="/boats">My boats</a></p>'
    ),
    "a paragraph, a script for the menu": page(
        '<title>Ann</title><script src="/js/jquery.min.js"></script><script src="/js/menu.js"></script>',
        f"<ul>{MENU}</ul><p>{PROSE}</p>",
    ),
    "coming soon": page(f"<title>Soon</title>{ANALYTICS}", "<h1>Coming soon</h1><p>We open in May.</p>"),
    "it works": b"<html><body><h1>It works!</h1></body></html>",
    "nothing at all": b"",
    "nothing but a title": page("<title>Blank</title>", ""),
    "nothing but analytics": page(f"<title>Blank</title>{ANALYTICS}", ""),
    "frames": b'<html><head><title>Old</title><script>var top1=1</script></head><frameset cols="20%,*">'
    b'<frame src="menu.html"><frame src="main.html"></frameset></html>',
    "an iframe": page(
        f"<title>Map</title>{ANALYTICS}", '<iframe src="https://maps.test/embed?x=1" width="100%"></iframe>'
    ),
    "meta refresh": page(
        '<meta http-equiv="refresh" content="0; url=/start"><title>Moved</title><script src="/app.js"></script>',
        '<div id="root"></div>',
    ),
    "login": page(
        '<title>Sign in</title><script src="/js/login.bundle.js"></script>',
        '<div id="app"><form action="/login" method="post"><input name="user"><input type="password" name="pass">'
        "<button>Sign in</button></form></div><noscript>Please enable JavaScript.</noscript>",
    ),
    "search box": page(
        '<title>Find</title><script src="/js/suggest.js"></script>',
        '<form action="/find"><input name="q"><button>Find</button></form>',
    ),
    "not found": page(
        '<title>404 - Page not found</title><script src="/static/js/main.1.js"></script>',
        '<div id="root"><h1>404</h1><p>There is nothing here.</p></div>',
    ),
    "server error": page(
        '<title>Error 500</title><script src="/static/js/main.1.js"></script>', '<div id="root"></div>'
    ),
    "forbidden": page(
        "<title>403 Forbidden</title>", '<h1>Forbidden</h1><script src="/x/bundle.js" type="module"></script>'
    ),
    "neither index nor follow": page(
        '<meta name="robots" content="noindex, nofollow"><script type="module" src="/assets/index-1.js"></script>',
        '<div id="app"></div>',
    ),
    "picture": page(
        f'<title>Boat</title>{ANALYTICS}<script src="/js/zoom.js"></script>',
        '<img src="/boat.jpg" alt=""><a href="/boats/2">next</a>',
    ),
    "gallery": page(
        '<title>Boats</title><script src="/js/lightbox.js"></script>',
        "".join(f'<a href="/boat/{number}"><img src="/t/{number}.jpg"></a>' for number in range(40)),
    ),
    "film": page('<title>Film</title><script src="/player.js"></script>', '<video src="/film.mp4" controls></video>'),
    "directory": b"<html><head><title>Index of /pub</title></head><body><h1>Index of /pub</h1><pre>"
    + b"".join(b'<a href="f%d.txt">f%d.txt</a>\n' % (number, number) for number in range(30))
    + b"</pre></body></html>",
    "wordpress, hardly a word": page(
        '<title>Hello</title><script src="/wp-includes/js/jquery/jquery.min.js?ver=3"></script>'
        '<script src="/wp-includes/js/wp-emoji-release.min.js"></script>',
        f'<header><ul>{MENU}</ul></header><div id="content"><h1>Hello</h1></div><div id="root-footer">Ann, 2020</div>',
    ),
    "parked": page(
        "<title>boats.test</title>",
        "<h1>boats.test is for sale</h1><p>Ask the owner for a price.</p>"
        '<script src="https://pagead2.googlesyndication.com/pagead/js/adsbygoogle.js"></script>',
    ),
    "about scripts": page(
        "<title>JavaScript in ten lines</title>",
        f"<article><h1>JavaScript</h1><p>How to enable JavaScript. {PROSE * 6}</p></article><ul>{MENU}</ul>"
        "<script src='/hl.js'></script>",
    ),
    "a module for the theme": page(
        "<title>Hours</title><script type='module' src='/theme.js'></script>",
        f"<h1>Hours</h1><ul>{MENU}</ul><p>{PROSE * 2} Monday to Friday, nine to five. Closed on holidays.</p>",
    ),
    "leads on by a script": page("<title>x</title>", "<script>location.replace('/start/');</script>"),
    "flash": page("<title>Game</title><script src='/swfobject.js'></script>", '<object data="g.swf"></object>'),
    "a form to write to them, guarded": page(
        "<title>Write to us</title><script src='https://www.google.com/recaptcha/api.js'></script>",
        '<form method="post"><textarea name="t"></textarea><div class="g-recaptcha"></div></form>',
    ),
    "fallback for those without scripts": page(
        "<title>Paper</title><script src='/js/paper.js'></script>",
        f"<noscript>Some things here need JavaScript.</noscript><article>{PARAGRAPHS}</article><ul>{MENU}</ul>",
    ),
}
"""None of these has more to show, or more than we should ask a browser for."""

CHALLENGES: dict[str, bytes] = {
    "cloudflare": page(
        '<title>Just a moment...</title><meta name="robots" content="noindex">',
        "<noscript>Enable JavaScript and cookies to continue</noscript><script>(function(){window._cf_chl_opt={"
        'cvId:"3",cType:"managed"};var a=document.createElement("script");'
        'a.src="/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1?ray=1";})();</script>',
    ),
    "cloudflare, translated": page(
        "<title>Nur einen Moment…</title>",
        '<div id="root"></div><script>window._cf_chl_opt={}</script><script src="/cdn-cgi/x/orchestrate/v1"></script>',
    ),
    "cloudflare, older": page(
        "<title>harbour.test</title>",
        '<noscript>Please turn JavaScript on.</noscript><div class="cf-browser-verification cf-im-under-attack"><h1>'
        'Checking your browser before accessing harbour.test.</h1></div><script src="/cdn-cgi/bm.js"></script>',
    ),
    "turnstile": page(
        '<script src="https://challenges.cloudflare.com/turnstile/v0/api.js" async defer></script>',
        '<div id="app"></div>',
    ),
    "datadome": page(
        "<title>harbour.test</title><style>#cmsg{animation:A 1.5s}</style>",
        '<p id="cmsg">Please enable JS and disable any ad blocker</p><script>var dd={"rt":"c","cid":"1"}</script>'
        '<script src="https://ct.captcha-delivery.com/c.js"></script>',
    ),
    "imperva": page(
        '<meta name="robots" content="noindex,follow"><script src="/_Incapsula_Resource?SWJIYLWA=1"></script>',
        '<div id="main-app"></div>',
    ),
    "perimeterx": page(
        "<title>Access to this page has been denied</title>",
        '<div id="px-captcha"></div><script>window._pxAppId="PX1"</script><script src="/1/captcha.js"></script>',
    ),
    "akamai": page(
        "<title>&nbsp;</title>",
        '<div id="sec-if-cpt-container"></div><script src="/_sec/cp_challenge/ak-challenge-3-7.htm"></script>'
        "<noscript>Please enable JavaScript.</noscript>",
    ),
    "aws": page(
        '<title></title><script>window.awsWafCookieDomainList=[];window.gokuProps={"key":"1"}</script>'
        '<script src="https://1.2.token.awswaf.com/1/2/challenge.js"></script>',
        '<div id="challenge-container"></div><noscript><h1>JavaScript is disabled</h1>In order to continue, we need to '
        "verify that you're not a robot. This requires JavaScript.</noscript>",
    ),
    "kasada": page("", '<script>window.KPSDK={};KPSDK.now=Date.now</script><script src="/1/2/ips.js?x=1"></script>'),
    "sucuri": page(
        "<title>You are being redirected...</title>",
        "<noscript>Javascript is required. Please enable javascript before you are allowed to see this page.</noscript>"
        "<script>var s={},u,c,U,r,i,l=0,a,e=eval;sucuri_cloudproxy_js='';</script>",
    ),
    "anubis": page(
        '<title>Making sure you&#39;re not a bot!</title><script id="anubis_challenge" type="application/json">{}'
        "</script>",
        '<h1>Making sure you&#39;re not a bot!</h1><script type="module" src="/.within.website/x/main.mjs"></script>',
    ),
    "ddos-guard": page(
        "<title>DDoS-Guard</title>",
        "<h1>Checking your browser before accessing</h1><noscript>Enable JavaScript</noscript>"
        '<script src="/.well-known/ddos-guard/js-challenge/index.js"></script>',
    ),
    "vercel": page(
        "<title>Vercel Security Checkpoint</title>",
        '<div id="root"><p>We\'re verifying your browser</p></div>'
        '<script type="module" src="/.well-known/c.js"></script>'
        "<noscript>Enable JavaScript to continue</noscript>",
    ),
    "free hosting": page(
        '<script src="/aes.js"></script>',
        '<script>function toNumbers(d){}document.cookie="__test="+1;location.href="/?i=1";</script>'
        "<noscript>This site requires Javascript to work, please enable Javascript in your browser</noscript>",
    ),
    "alibaba": page(
        "<title></title>",
        '<div id="root"></div><script>var arg1="A1";document.cookie="acw_sc__v2="+1</script>'
        '<script src="/x.js"></script>',
    ),
    "f5": page(
        "<title></title>",
        "<noscript>Please enable JavaScript to view the page content. Your support ID is: 1.</noscript>"
        '<script src="/TSPD/08?type=9"></script>',
    ),
    "hcaptcha": page(
        "<title>One more step</title><script src='https://js.hcaptcha.com/1/api.js'></script>",
        '<div class="h-captcha"></div><div id="root"></div>',
    ),
    "by its words alone": page(
        "<title>harbour.test</title>",
        '<div id="app"><p>Verifying that you are human. This may take a few seconds.</p></div>'
        '<script type="module" src="/check.js"></script>',
    ),
    "by its words, in German": page(
        "<title>Sicherheitsprüfung</title>",
        '<div id="app">Bitte bestätigen Sie, dass Sie kein Roboter sind.</div>'
        '<script type="module" src="/c.js"></script>',
    ),
}
"""Gatekeepers. We do not try to get past them."""

FURTHER: dict[str, bytes] = {
    "a feed of short messages": page(
        "<title>Chirp</title><script>window.__META__={}</script>",
        '<noscript><form action="" method="POST"><div class="box"><svg></svg><h1>JavaScript is not available.</h1>'
        "<p>Scripts are off in this browser. Switch them on, or use another one, to go on.</p></div></form></noscript>"
        '<div id="react-root" style="height:100%"><div id="placeholder"><svg><path d="M1 1"></path></svg></div></div>'
        '<script crossorigin="anonymous" src="https://cdn.chirp.test/web/vendor.1.js"></script>',
    ),
    "films": page(
        f"<title>Films</title><script>var initialData={STATE}</script><script>var config={STATE}</script>",
        '<film-app disable-upgrade="true"><div slot="bar" id="masthead-skeleton"></div></film-app>'
        '<script src="/s/desktop/films.js" nonce="x"></script>',
    ),
    "chat rooms": page(
        '<title>Rooms</title><script src="/assets/web.1f.js" defer nonce="1"></script>', '<div id="app-mount"></div>'
    ),
    "sap": page(
        '<title>Orders</title><script id="sap-ui-bootstrap" src="resources/sap-ui-core.js" data-sap-ui-async="true" '
        'data-sap-ui-oninit="module:sap/ui/core/ComponentSupport"></script>',
        '<div data-sap-ui-component data-name="orders"></div>',
        ' class="sapUiBody"',
    ),
    "extjs": page(
        '<title>Admin</title><script id="microloader" data-app="1" type="text/javascript" src="boot.js"></script>', ""
    ),
    "gwt": page(
        '<title>Mailbox</title><script type="text/javascript" src="mailbox/mailbox.nocache.js"></script>',
        "<iframe src=\"javascript:''\" id='__gwt_historyFrame' style='width:0;height:0'></iframe><noscript><div>"
        "Your web browser must have JavaScript enabled for this to be shown.</div></noscript>",
    ),
    "meteor": page(
        '<link rel="stylesheet" href="/0a.css?meteor_css_resource=true"><title>Lists</title>',
        "<script>__meteor_runtime_config__=JSON.parse(decodeURIComponent('%7B%7D'))</script>"
        '<script src="/0b.js?meteor_js_resource=true"></script>',
    ),
    "aurelia": page(
        "<title>Trips</title>",
        '<div class="splash"><div class="message">Trips</div><i class="fa fa-spinner fa-spin"></i></div>'
        '<script src="jspm_packages/system.js"></script><script src="config.js"></script>'
        '<script>System.import("aurelia-bootstrapper");</script>',
    ),
    "durandal": page(
        "<title>Desk</title>",
        '<div id="applicationHost"><div class="splash"><div class="message">Desk</div></div></div>'
        '<script src="/lib/require/require.js" data-main="/app/main"></script>',
    ),
    "mithril": page("<title>Maps</title>", '<script src="bin/app.js"></script>'),
    "parcel": page(
        '<title>Draw</title><script type="module" src="/draw.e31b.js"></script>', '<div id="container"></div>'
    ),
    "preact": page(
        "<title>Notes</title><link rel=preload href=/bundle.2f.js as=script>",
        "<script defer=defer src=/bundle.2f.js></script><script nomodule src=/polyfills.3.js></script>",
    ),
    "dashboards": page(
        "<title>Charts</title>",
        '<div class="preloader"><div class="preloader__text">Loading Charts</div><div class="preloader__text fail"><p>'
        "If you can read this, the files of Charts could not be loaded. This may be due to a reverse proxy, to a "
        "configuration of the root URL that is wrong, or to a build that was not made. Look into the console of your "
        "browser, then into the log of the server, and restart it after the settings were changed.</p></div></div>"
        '<div id="reactRoot"></div><script nonce="" src="public/build/app.1.js"></script>',
    ),
    "logs": page(
        '<title>Logs</title><script src="/bootstrap.js" nonce=""></script>',
        '<div class="welcome" id="loading_message"><div class="title">Loading Logs</div></div>'
        "<noscript>Logs needs JavaScript.</noscript>",
    ),
    "notebooks": page(
        '<title>Pages</title><script defer src="/_assets/app-9d.js"></script>', '<div id="pages-app"></div>'
    ),
    "plots": page(
        "<title>Plots</title>",
        '<div id="react-entry-point"><div class="_loading">Loading...</div></div><footer><script id="_config" '
        'type="application/json">{"url_base_pathname":null}</script><script src="/_components/renderer.v2.js"></script>'
        "</footer>",
    ),
    "ionic": page(
        '<title>Walks</title><script type="module" src="main.js"></script>',
        "<ion-app><ion-router></ion-router></ion-app>",
    ),
    "asks in Spanish, in the page": page(
        "<title>Mapa</title>",
        '<p class="aviso">Esta aplicación necesita JavaScript para funcionar.</p><script src="/js/mapa.js"></script>',
    ),
    "asks in Turkish": page(
        "<title>Harita</title>",
        "<noscript>Lütfen tarayıcınızda JavaScript'i etkinleştirin.</noscript><script src='/js/harita.js'></script>",
    ),
    "asks in Chinese": page(
        "<title>地图</title>",
        "<noscript><strong>很抱歉，没有启用 JavaScript 本站无法正常工作。请启用后继续。</strong></noscript>"
        '<div id="wrap"></div><script src="/js/chunk-libs.1.js"></script>',
    ),
    "with a banner about cookies": page(
        "<title>Seeds</title>",
        "<div class=banner><p>We use cookies and similar things to keep you signed in, to see which pages are read, "
        "and to show what fits. You may say no to all but those that are needed, and change your mind at any time. "
        'Our partners read some. More is in our <a href="/privacy">notice</a> and in <a href="/terms">the terms</a>.'
        "</p><button>Yes</button></div><div id=app></div><script src=/dist/seeds.js></script>",
    ),
    "a header, a footer, nothing between": page(
        "<title>Tools</title>",
        '<header><a href="/">Tools</a> <a href="/all">All tools</a> <a href="/new">New</a></header>'
        '<main id="main-content"></main><footer><a href="/terms">Terms</a> <a href="/privacy">Privacy</a> © Tools'
        "</footer>"
        '<script src="/dist/site.js"></script>',
    ),
}
"""Shells that were written after the rules, to see what those are worth; the last two and the dashboards are hard."""

ALSO_COMPLETE: dict[str, bytes] = {
    "a card": page(
        '<title>Ann Lee</title><script src="/js/main.js"></script>',
        '<h1>Ann Lee</h1><p>Boat painter, Harbour Street 4</p><img src="ann.jpg"><a href="/boats">Boats</a>',
    ),
    "a card without a picture": page(
        '<title>Ann Lee</title><script src="/js/main.js"></script>',
        '<h1>Ann Lee</h1><p>Boat painter, Harbour Street 4, open from nine to five.</p><a href="/boats">Boats</a>',
    ),
    "soon, with an icon": page(
        '<title>Soon</title><script type="module" src="https://unpkg.test/ionicons/ionicons.esm.js"></script>',
        '<h1>Coming soon</h1><p>We open in May.</p><ion-icon name="boat"></ion-icon>',
    ),
    "languages to choose from": page(
        '<title>Harbour</title><script src="/js/lang.js"></script>',
        '<a href="/de/">Deutsch</a> <a href="/en/">English</a>',
    ),
    "of age": page(
        '<title>Wine</title><script src="/js/age.js"></script>',
        '<p>Are you eighteen?</p><a href="/shop">Yes</a> <a href="https://example.test/">No</a>',
    ),
    "old, in capitals": b'<HTML><BODY><CENTER><A HREF="enter.html"><IMG SRC="logo.gif"></A></CENTER>'
    b'<script src="/js/snow.js"></script></BODY></HTML>',
    "social root": page(
        '<title>Boats</title><script src="/js/site.js"></script>',
        f'<div id="fb-root"></div><ul>{MENU}</ul><div id="modal-root"></div>',
    ),
    "talk under a picture": page(
        '<title>Boat 7</title><script src="/js/site.js"></script>',
        '<h1>Boat 7</h1><img src="/7.jpg"><p>Painted in spring, sold in autumn to somebody who sails it to the islands '
        "every other week, weather permitting.</p><div id=thread></div><noscript>Please enable JavaScript to view the "
        "comments.</noscript>",
    ),
    "amp": page(
        '<title>Boat</title><script async src="https://cdn.ampproject.org/v0.js"></script>',
        '<h1>Boat</h1><amp-img src="/7.jpg" width="9" height="9"></amp-img><p>Sold in autumn.</p>',
    ),
    "old menu, old scripts": page(
        '<title>Club</title><script src="/menu.js"></script><script src="/jquery.js"></script>',
        f"<table><tr><td><ul>{MENU}</ul></td><td>Welcome to the club.</td></tr></table>",
    ),
    "a manual": page(
        '<title>from_mut in std</title><script src="/static/storage-1.js"></script>',
        '<nav><a href="/std/">std</a></nav><doc-toolbar></doc-toolbar><h1>Function from_mut</h1><pre>fn from_mut</pre>'
        "<p>Makes a slice of length one of a reference, without copying anything.</p>",
    ),
    "thanks": page(
        '<title>Thanks</title><script src="/js/form.js"></script>',
        '<h1>Thank you</h1><p>Your message has come. We write back within two days.</p><a href="/">Home</a>',
    ),
}
"""Written after the rules, too."""
