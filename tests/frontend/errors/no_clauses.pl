:- include('vocabulary.pl').
